// SPDX-License-Identifier: Apache-2.0
// Where local variables are is nothing that the kernel's BTF has a place for, and LLVM 19's DWARF writer does not survive all that the
// passes before this one do to blocks: DwarfDebug::finishEntityDefinitions() now and then meets a variable that has no entry. So
// it is not told of them. BTF wants the names of arguments (btf_func_check() in kernel/bpf/btf.c), which stay.
#include "passes.h"

#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace
{

struct Variables : PassInfoMixin<Variables> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		DebugInfoFinder finder;

		for (Function &function : module) {
			for (Instruction &inst : make_early_inc_range(instructions(function))) {
				inst.dropDbgRecords();
				if (isa<DbgInfoIntrinsic>(inst))
					inst.eraseFromParent();
			}
		}
		finder.processModule(module);
		for (DISubprogram *subprogram : finder.subprograms())
			keepArguments(*subprogram);
		return PreservedAnalyses::all();
	}

      private:
	static void keepArguments(DISubprogram &subprogram)
	{
		SmallVector<Metadata *> arguments;

		for (DINode *node : subprogram.getRetainedNodes()) {
			auto *variable = dyn_cast<DILocalVariable>(node);
			if (variable && variable->getArg())
				arguments.push_back(variable);
		}
		if (arguments.size() != subprogram.getRetainedNodes().size())
			subprogram.replaceRetainedNodes(MDTuple::get(subprogram.getContext(), arguments));
	}
};

} // namespace

void lambda::addVariables(ModulePassManager &passes)
{
	passes.addPass(Variables());
}
