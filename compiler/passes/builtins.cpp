// SPDX-License-Identifier: Apache-2.0
// There is no C library for the NIC, so clang leaves calls of its functions alone (-ffreestanding). This pass marks comparisons of a few
// bytes, of constant number, as builtins, so that BPF's code generator turns them into loads.
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

// A memcmp of the author's own, or of the SDK, has a body.
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
