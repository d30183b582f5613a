// SPDX-License-Identifier: Apache-2.0
// Function pointers: BPF can only call named functions. The functions whose address a program takes are numbered from 1 on. Their numbers
// replace their addresses, and a call through a pointer becomes a switch over the functions of its type. Any other number is a fault.
#include "faults.h"
#include "passes.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace
{

// An entry in llvm.used keeps a function, but does not take its address.
bool isKeptOnly(User *user)
{
	if (!isa<Constant>(user))
		return false;
	return all_of(user->users(), [](User *outer) {
		auto *global = dyn_cast<GlobalVariable>(outer);
		return global ? global->getName().starts_with("llvm.") : isKeptOnly(outer);
	});
}

bool takesAddress(const Use &use)
{
	auto *call = dyn_cast<CallBase>(use.getUser());
	return !(call && call->isCallee(&use)) && !isa<BlockAddress>(use.getUser()) && !isKeptOnly(use.getUser());
}

// Calls of the kernel's helpers have a constant number as their callee.
bool isThroughPointer(const CallBase &call)
{
	return !call.isInlineAsm() && !isa<Constant>(call.getCalledOperand()->stripPointerCasts());
}

void makeDirect(CallInst &call, Function &callee)
{
	call.setCalledFunction(&callee);
	call.setCallingConv(callee.getCallingConv());
	call.setMetadata(LLVMContext::MD_callees, nullptr);
}

class Calls
{
      public:
	explicit Calls(Module &module) : module(module)
	{
	}

	bool run();

      private:
	void number(Function &);
	void lower(CallInst &);

	Module &module;
	SmallVector<std::pair<Function *, ConstantInt *>> targets;
};

bool Calls::run()
{
	SmallVector<CallInst *> calls;
	for (Function &function : module)
		for (Instruction &inst : instructions(function))
			if (auto *call = dyn_cast<CallInst>(&inst); call && isThroughPointer(*call))
				calls.push_back(call);
	for (Function &function : module)
		if (!function.isIntrinsic() && any_of(function.uses(), takesAddress))
			number(function);
	for (CallInst *call : calls)
		lower(*call);
	return !calls.empty() || !targets.empty();
}

// Replaces a function's address by its number, in code and in initializers.
void Calls::number(Function &function)
{
	auto *number = ConstantInt::get(Type::getInt64Ty(module.getContext()), targets.size() + 1);
	targets.push_back({ &function, number });
	function.replaceUsesWithIf(ConstantExpr::getIntToPtr(number, function.getType()),
				   [](Use &use) { return takesAddress(use); });
}

void Calls::lower(CallInst &call)
{
	BasicBlock *block = call.getParent(), *rest = block->splitBasicBlock(call.getIterator());
	Function *function = block->getParent();
	LLVMContext &context = module.getContext();

	auto *unknown = BasicBlock::Create(context, "unknown", function, rest);
	IRBuilder<> at(unknown);
	at.SetCurrentDebugLocation(call.getDebugLoc());
	lambda::createFault(at, LN_FAULT_BOUNDS);

	block->getTerminator()->eraseFromParent();
	at.SetInsertPoint(block);
	Value *pointer = at.CreatePtrToInt(call.getCalledOperand(), at.getInt64Ty());
	SwitchInst *choice = at.CreateSwitch(pointer, unknown, targets.size());

	PHINode *result = nullptr;
	if (!call.getType()->isVoidTy() && !call.use_empty()) {
		at.SetInsertPoint(&rest->front());
		result = at.CreatePHI(call.getType(), targets.size());
	}
	for (auto [target, number] : targets) {
		if (target->getFunctionType() != call.getFunctionType())
			continue;
		auto *chosen = BasicBlock::Create(context, target->getName(), function, rest);
		auto *direct = cast<CallInst>(call.clone());
		direct->insertInto(chosen, chosen->end());
		makeDirect(*direct, *target);
		BranchInst::Create(rest, chosen);
		choice->addCase(number, chosen);
		if (result)
			result->addIncoming(direct, chosen);
	}
	if (result && !result->getNumIncomingValues()) {
		result->replaceAllUsesWith(PoisonValue::get(result->getType()));
		result->eraseFromParent();
		result = nullptr;
	}
	call.replaceAllUsesWith(result ? static_cast<Value *>(result) : PoisonValue::get(call.getType()));
	call.eraseFromParent();
}

struct IndirectCalls : PassInfoMixin<IndirectCalls> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		return Calls(module).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
	}
};

} // namespace

void lambda::addCalls(ModulePassManager &passes)
{
	passes.addPass(IndirectCalls());
}
