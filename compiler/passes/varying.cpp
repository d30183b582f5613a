// SPDX-License-Identifier: Apache-2.0
// Arrays of variable length, and alloca(): a program of the kernel has a stack of fixed size, which the verifier has to know in whole.
// They lie in memory of the request, one behind the other, and a word says how far it is filled, also to functions that are called.
//
//	array:   begins behind the arrays that are in scope there, and a fault where the memory ends before it does
//	alloca:  begins where the memory is filled to
//	return:  the memory is filled as it was at the function's begin
//
// The arrays in scope are among those whose declarations dominate it, since nothing may jump into the scope of one (C17 6.8.6.1).
// One that is declared again, in a loop, is out of scope. So nothing has to be known of where scopes end, which LLVM's BPF target
// forgets before any pass of ours runs (llvm/lib/Target/BPF/BPFIRPeephole.cpp).
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

// What all such objects take together (docs/language.md).
const uint64_t varyingSize = 16384;
const uint64_t varyingAlign = 16;

// An array is a variable; what alloca() gives is none.
bool isArray(AllocaInst &local)
{
	return !findDVRDeclares(&local).empty() || !findDbgDeclares(&local).empty();
}

// Those that are not on the stack, each behind what dominates it.
SmallVector<AllocaInst *, 4> varyingOf(Function &function)
{
	SmallVector<AllocaInst *, 4> locals;

	for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function))
		for (Instruction &inst : *block)
			if (auto *local = dyn_cast<AllocaInst>(&inst); local && !local->isStaticAlloca())
				locals.push_back(local);
	return locals;
}

// The objects of one module.
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
	type = StructType::get(number, number, bytes); // the second is for the alignment of the bytes
}

// The address of how much is filled, which is zero when a request begins, as the first word of each such object is.
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

// Gives an object its place, and says where it ends.
Value *Varying::lower(AllocaInst &local, Value *from)
{
	IRBuilder<> at(&local);
	const DataLayout &layout = module.getDataLayout();
	Value *count = at.CreateZExtOrTrunc(local.getArraySize(), number);
	uint64_t one = std::max<uint64_t>(layout.getTypeAllocSize(local.getAllocatedType()), 1);
	// No product overflows: who asks for more than there is has asked for too much.
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
	// Where alloca() is called, all stays until the function returns.
	bool scoped = all_of(locals, [](AllocaInst *local) { return isArray(*local); });
	DominatorTree tree(function);
	SmallVector<int, 4> around; // the last array that dominates each, -1 for none
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
