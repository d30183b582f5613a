// SPDX-License-Identifier: Apache-2.0
// C11's ordered loads, stores and fences: BPF has no instructions for them before its fourth version. But operations that fetch the old
// value are full barriers (Documentation/bpf/standardization/instruction-set.rst).
//
//	load:   adds zero
//	store:  exchanges
//	fence:  exchanges a word of the stack
#include "passes.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace
{

const auto fullOrder = AtomicOrdering::SequentiallyConsistent;

bool isWord(Type *type)
{
	return type->isIntegerTy(32) || type->isIntegerTy(64);
}

bool lower(LoadInst &load)
{
	if (!isStrongerThanMonotonic(load.getOrdering()) || !isWord(load.getType()))
		return false;
	IRBuilder<> at(&load);
	load.replaceAllUsesWith(at.CreateAtomicRMW(AtomicRMWInst::Add, load.getPointerOperand(),
						   ConstantInt::get(load.getType(), 0), load.getAlign(), fullOrder));
	load.eraseFromParent();
	return true;
}

bool lower(StoreInst &store)
{
	Value *value = store.getValueOperand();

	if (!isStrongerThanMonotonic(store.getOrdering()) || !isWord(value->getType()))
		return false;
	IRBuilder<>(&store).CreateAtomicRMW(AtomicRMWInst::Xchg, store.getPointerOperand(), value, store.getAlign(),
					    fullOrder);
	store.eraseFromParent();
	return true;
}

bool lower(FenceInst &fence)
{
	IRBuilder<> entry(&*fence.getFunction()->getEntryBlock().getFirstNonPHIOrDbgOrAlloca());

	if (fence.getSyncScopeID() != SyncScope::SingleThread) {
		Value *word = entry.CreateAlloca(entry.getInt64Ty(), nullptr, "fence");
		entry.CreateStore(entry.getInt64(0), word);
		IRBuilder<>(&fence).CreateAtomicRMW(AtomicRMWInst::Xchg, word, entry.getInt64(0), Align(8), fullOrder);
	}
	fence.eraseFromParent();
	return true;
}

bool lower(Instruction &inst)
{
	if (auto *load = dyn_cast<LoadInst>(&inst))
		return lower(*load);
	if (auto *store = dyn_cast<StoreInst>(&inst))
		return lower(*store);
	auto *fence = dyn_cast<FenceInst>(&inst);
	return fence && lower(*fence);
}

// BTF has no atomic types: LLVM emits no type for an atomic variable, which the kernel refuses.
void forgetAtomicTypes(Module &module)
{
	DebugInfoFinder found;
	SmallVector<MDNode *> nodes;

	found.processModule(module);
	append_range(nodes, found.types());
	for (DIGlobalVariableExpression *global : found.global_variables())
		nodes.push_back(global->getVariable());
	for (DIType *type : found.types())
		if (auto *composite = dyn_cast<DICompositeType>(type); composite && composite->getRawElements())
			nodes.push_back(cast<MDNode>(composite->getRawElements()));
	for (MDNode *node : nodes)
		for (unsigned i = 0; i < node->getNumOperands(); i++) {
			auto *type = dyn_cast_or_null<DIDerivedType>(node->getOperand(i));
			if (type && type->getTag() == dwarf::DW_TAG_atomic_type)
				node->replaceOperandWith(i, type->getBaseType());
		}
}

struct Ordered : PassInfoMixin<Ordered> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		bool changed = false;

		for (Function &function : module)
			for (Instruction &inst : make_early_inc_range(instructions(function)))
				changed |= lower(inst);
		forgetAtomicTypes(module);
		return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
	}
};

} // namespace

void lambda::addOrdered(ModulePassManager &passes)
{
	passes.addPass(Ordered());
}
