// SPDX-License-Identifier: Apache-2.0
// Headers: reports the lines of a match stage's parser and deparser that still have instructions once LLVM has removed dead code. The
// compiler generated these lines (compiler/match), and knows which fields each of them reads or writes.
#include "passes.h"
#include "remarks.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace
{

struct Headers : PassInfoMixin<Headers> {
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);
};

} // namespace

// The line of a function that an instruction comes from, also by inlining; 0 if it comes from another function.
static unsigned lineIn(StringRef function, const Instruction &inst)
{
	for (const DILocation *at = inst.getDebugLoc(); at; at = at->getInlinedAt())
		if (DISubprogram *subprogram = at->getScope()->getSubprogram(); subprogram->getName() == function)
			return at->getLine();
	return 0;
}

PreservedAnalyses Headers::run(Module &module, ModuleAnalysisManager &)
{
	for (auto [function, state] : { std::pair{ "pif_parse", "read" }, std::pair{ "pif_deparse", "written" } }) {
		SmallSetVector<unsigned, 32> lines;
		for (Function &body : module)
			for (Instruction &inst : instructions(body))
				if (unsigned line = isa<DbgInfoIntrinsic>(inst) ? 0 : lineIn(function, inst))
					lines.insert(line);
		for (unsigned line : lines)
			lambda::Remark(module, "header").with("state", state).with("line", line);
	}
	return PreservedAnalyses::all();
}

void lambda::addHeaders(ModulePassManager &passes)
{
	passes.addPass(Headers());
}
