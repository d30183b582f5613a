// SPDX-License-Identifier: Apache-2.0
#include "faults.h"
#include "diagnose.h"
#include "memory.h"
#include "passes.h"
#include "program.h"

#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

static std::string nameOf(unsigned fault)
{
	std::string own = "__lambda_fault";

	return fault == LN_FAULT_OWN ? own : own + "." + std::to_string(fault);
}

void lambda::createFault(IRBuilder<> &at, unsigned fault)
{
	Module *module = at.GetInsertBlock()->getModule();
	FunctionCallee callee = module->getOrInsertFunction(nameOf(fault), at.getVoidTy());
	auto *function = cast<Function>(callee.getCallee());

	function->setDoesNotReturn();
	function->setDoesNotThrow();
	at.CreateCall(callee)->setDoesNotReturn();
	at.CreateUnreachable();
}

namespace
{

struct Faults : PassInfoMixin<Faults> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		bool any = false;
		for (unsigned fault = LN_FAULT_OWN; fault < LN_FAULTS; fault++)
			if (Function *callee = module.getFunction(nameOf(fault))) {
				lower(*callee, fault);
				any = true;
			}
		return any ? PreservedAnalyses::none() : PreservedAnalyses::all();
	}

      private:
	void lower(Function &callee, unsigned fault)
	{
		DenseMap<Function *, BasicBlock *> blocks;
		for (User *user : make_early_inc_range(callee.users())) {
			auto *call = cast<CallInst>(user);
			Function *function = call->getFunction();
			if (!lambda::isProgram(*function)) {
				lambda::refuse(*call, "a fault in a function that is not inlined");
				continue;
			}
			BasicBlock *&block = blocks[function];
			if (!block)
				block = lambda::makeFault(*function, fault);
			changeToUnreachable(call->getNextNode());
			Instruction *end = call->getParent()->getTerminator();
			IRBuilder<>(end).CreateBr(block);
			end->eraseFromParent();
			call->eraseFromParent();
		}
		if (callee.use_empty())
			callee.eraseFromParent();
	}
};

} // namespace

void lambda::addFaults(ModulePassManager &passes)
{
	passes.addPass(Faults());
}
