// SPDX-License-Identifier: Apache-2.0
// Forgets where local variables are, before blocks are taken apart: the kernel's BTF has no place for it. While a block has no last
// instruction, LLVM 19 keeps the records of variables at its end in a table by the block's address (LLVMContextImpl::TrailingDbgRecords).
// Left there, they outlive the block, and turn up in whatever block of any function gets that address next. BTF needs the names of
// arguments (btf_func_check() in kernel/bpf/btf.c), and the report needs the names of variables, so these stay.
#include "passes.h"
#include "remarks.h"

#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

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

static void forgetVariables(Function &function)
{
	for (Instruction &inst : instructions(function))
		if (auto *local = dyn_cast<AllocaInst>(&inst))
			lambda::nameVariable(*local);
	for (Instruction &inst : make_early_inc_range(instructions(function))) {
		inst.dropDbgRecords();
		if (isa<DbgInfoIntrinsic>(inst))
			inst.eraseFromParent();
	}
}

void lambda::forgetVariables(Module &module)
{
	DebugInfoFinder finder;

	for (Function &function : module)
		::forgetVariables(function);
	finder.processModule(module);
	for (DISubprogram *subprogram : finder.subprograms())
		keepArguments(*subprogram);
}

namespace
{

struct Variables : PassInfoMixin<Variables> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		lambda::forgetVariables(module);
		return PreservedAnalyses::all();
	}
};

} // namespace

void lambda::addVariables(ModulePassManager &passes)
{
	passes.addPass(Variables());
}
