// SPDX-License-Identifier: Apache-2.0
// For the NIC there is no C library, so clang leaves alone what the author calls as one's functions (-ffreestanding). A comparison
// of a constant few bytes becomes loads all the same, in BPF's code generator, once it may.
#include "passes.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace
{

class BuiltinsPass : public PassInfoMixin<BuiltinsPass>
{
      public:
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);
};

} // namespace

// Where the author has a memcmp of his own, or the SDK's, it has a body.
static bool isComparison(const CallBase &call)
{
	const Function *callee = call.getCalledFunction();

	return callee && callee->isDeclaration() && callee->getName() == "memcmp" &&
	       isa<ConstantInt>(call.getArgOperand(2));
}

PreservedAnalyses BuiltinsPass::run(Module &module, ModuleAnalysisManager &)
{
	for (Function &function : module) {
		function.removeFnAttr("no-builtins");
		for (Instruction &inst : instructions(function)) {
			auto *call = dyn_cast<CallBase>(&inst);
			if (call && isComparison(*call)) {
				call->removeFnAttr(Attribute::NoBuiltin);
				call->removeFnAttr("no-builtins");
			}
		}
	}
	return PreservedAnalyses::all();
}

void lambda::addBuiltins(ModulePassManager &passes)
{
	passes.addPass(BuiltinsPass());
}
