// SPDX-License-Identifier: Apache-2.0
// Arrays of variable length, and alloca(): a kernel program has a stack of fixed size. So these allocations lie in memory of the request, one
// behind the other. A word says how far it is filled, also to called functions.
//
//	array:   begins behind the arrays that are in scope there; a fault if it does not fit
//	alloca:  begins where the memory is filled to
//	return:  the memory is filled as it was at the function's begin
//
// The declarations of all arrays in scope dominate the new one, since nothing may jump into an array's scope (C17 6.8.6.1). An array that is
// declared again, in a loop, is out of scope. So the ends of scopes are not needed, which LLVM's BPF target forgets before any of our
// passes run (llvm/lib/Target/BPF/BPFIRPeephole.cpp).
#include "faults.h"
#include "passes.h"

#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace
{

// What all such allocations have together (docs/language.md).
const uint64_t varyingSize = 16384;
const uint64_t varyingAlign = 16;

// Whether an allocation is an array. Only arrays have a debug variable; what alloca() gives has none.
bool isArray(AllocaInst &local)
{
	return !findDVRDeclares(&local).empty() || !findDbgDeclares(&local).empty();
}

// The allocations of variable size, each after those that dominate it.
SmallVector<AllocaInst *, 4> varyingOf(Function &function)
{
	SmallVector<AllocaInst *, 4> locals;

	for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function))
		for (Instruction &inst : *block)
			if (auto *local = dyn_cast<AllocaInst>(&inst); local && !local->isStaticAlloca())
				locals.push_back(local);
	return locals;
}

// The allocations of one module.
class Varying
{
      public:
	explicit Varying(Module &);

	bool lower(Function &);

      private:
	Value *filled(IRBuilder<> &);
	Value *lower(AllocaInst &, Value *from);
	void restoreAtReturns(Function &, Value *before);

	Module &module;
	Type *number;
	StructType *type;
	GlobalVariable *memory = nullptr;
};

Varying::Varying(Module &module) : module(module), number(Type::getInt64Ty(module.getContext()))
{
	auto *bytes = ArrayType::get(Type::getInt8Ty(module.getContext()), varyingSize);
	type = StructType::get(number, number, bytes); // the second number aligns the bytes
}

// The address of the word that says how much is filled. Like the first word of each request variable, it is zero when a request begins.
Value *Varying::filled(IRBuilder<> &at)
{
	if (!memory) {
		memory = new GlobalVariable(module, type, false, GlobalValue::InternalLinkage,
					    ConstantAggregateZero::get(type), "lambda_varying");
		memory->setSection(".bss..request");
		memory->setAlignment(Align(varyingAlign));
	}
	return at.CreateStructGEP(type, memory, 0);
}

// Gives an allocation its place, and returns its end.
Value *Varying::lower(AllocaInst &local, Value *from)
{
	IRBuilder<> at(&local);
	const DataLayout &layout = module.getDataLayout();
	Value *count = at.CreateZExtOrTrunc(local.getArraySize(), number);
	uint64_t one = std::max<uint64_t>(layout.getTypeAllocSize(local.getAllocatedType()), 1);
	// Comparing the count first keeps the product from overflowing.
	Value *few = at.CreateICmpULE(count, at.getInt64(varyingSize / one));
	Value *size = at.CreateMul(count, at.getInt64(one));
	Value *lines = at.CreateAnd(at.CreateAdd(size, at.getInt64(varyingAlign - 1)), -varyingAlign);
	Value *end = at.CreateAdd(from, lines);
	Value *fits = at.CreateLogicalAnd(few, at.CreateICmpULE(end, at.getInt64(varyingSize)));
	Instruction *full = SplitBlockAndInsertIfThen(at.CreateNot(fits), &local, true);

	IRBuilder<> fault(full);
	lambda::createFault(fault, LN_FAULT_MEMORY);
	full->eraseFromParent();
	at.SetInsertPoint(&local);
	at.CreateStore(end, filled(at));
	Value *where = at.CreateInBoundsGEP(at.getInt8Ty(), at.CreateStructGEP(type, memory, 2), from);
	for (DbgVariableRecord *record : findDVRDeclares(&local))
		record->eraseFromParent();
	for (DbgDeclareInst *declare : findDbgDeclares(&local))
		declare->eraseFromParent();
	local.replaceAllUsesWith(where);
	local.eraseFromParent();
	return end;
}

void Varying::restoreAtReturns(Function &function, Value *before)
{
	for (BasicBlock &block : function)
		if (auto *leave = dyn_cast<ReturnInst>(block.getTerminator())) {
			IRBuilder<> at(leave);
			at.CreateStore(before, filled(at));
		}
}

bool Varying::lower(Function &function)
{
	SmallVector<AllocaInst *, 4> locals = varyingOf(function);
	if (locals.empty())
		return false;
	// In a function that calls alloca(), everything stays until it returns.
	bool scoped = all_of(locals, [](AllocaInst *local) { return isArray(*local); });
	DominatorTree tree(function);
	SmallVector<int, 4> around; // for each array, the last one that dominates it, or -1
	for (auto [i, local] : enumerate(locals)) {
		int last = int(i) - 1;
		while (last >= 0 && !tree.dominates(locals[last], local))
			last--;
		around.push_back(last);
	}
	IRBuilder<> entry(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
	Value *before = entry.CreateLoad(number, filled(entry));
	SmallVector<Value *, 4> ends;
	for (auto [i, local] : enumerate(locals)) {
		IRBuilder<> at(local);
		Value *from = !scoped ? at.CreateLoad(number, filled(at)) : around[i] >= 0 ? ends[around[i]] : before;
		ends.push_back(lower(*local, from));
	}
	restoreAtReturns(function, before);
	return true;
}

struct VaryingPass : PassInfoMixin<VaryingPass> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		Varying objects(module);
		bool changed = false;

		for (Function &function : module)
			changed |= !function.isDeclaration() && objects.lower(function);
		return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
	}
	static bool isRequired()
	{
		return true;
	}
};

} // namespace

void lambda::addVarying(ModulePassManager &passes)
{
	passes.addPass(VaryingPass());
}
