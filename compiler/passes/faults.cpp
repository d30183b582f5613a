// SPDX-License-Identifier: Apache-2.0
#include "faults.h"
#include "diagnose.h"
#include "memory.h"
#include "passes.h"
#include "program.h"

#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

static const char faultName[] = "__lambda_fault";

void lambda::createFault(IRBuilder<> &at)
{
	Module *module = at.GetInsertBlock()->getModule();
	FunctionCallee fault = module->getOrInsertFunction(faultName, at.getVoidTy());
	auto *function = cast<Function>(fault.getCallee());

	function->setDoesNotReturn();
	function->setDoesNotThrow();
	at.CreateCall(fault)->setDoesNotReturn();
	at.CreateUnreachable();
}

namespace
{

struct Faults : PassInfoMixin<Faults> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		Function *fault = module.getFunction(faultName);
		if (!fault)
			return PreservedAnalyses::all();
		DenseMap<Function *, BasicBlock *> blocks;
		for (User *user : make_early_inc_range(fault->users())) {
			auto *call = cast<CallInst>(user);
			Function *function = call->getFunction();
			if (!lambda::isProgram(*function)) {
				lambda::refuse(*call, "a fault in a function that is not inlined");
				continue;
			}
			BasicBlock *&block = blocks[function];
			if (!block)
				block = lambda::makeFault(*function);
			changeToUnreachable(call->getNextNode());
			Instruction *end = call->getParent()->getTerminator();
			IRBuilder<>(end).CreateBr(block);
			end->eraseFromParent();
			call->eraseFromParent();
		}
		if (fault->use_empty())
			fault->eraseFromParent();
		return PreservedAnalyses::none();
	}
};

} // namespace

void lambda::addFaults(ModulePassManager &passes)
{
	passes.addPass(Faults());
}
