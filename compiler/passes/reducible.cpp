// SPDX-License-Identifier: Apache-2.0
#include "loops.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Transforms/Utils/FixIrreducible.h"
#include "llvm/Transforms/Utils/LowerSwitch.h"

using namespace llvm;

bool lambda::makeReducible(Function &function, FunctionAnalysisManager &analyses)
{
	using Order = ReversePostOrderTraversal<Function *>;
	auto &loops = analyses.getResult<LoopAnalysis>(function);
	Order order(&function);

	if (!containsIrreducibleCFG<BasicBlock *, const Order, const LoopInfo>(order, loops))
		return false;
	FunctionPassManager passes;
	passes.addPass(LowerSwitchPass());
	passes.addPass(FixIrreduciblePass());
	passes.run(function, analyses);
	analyses.invalidate(function, PreservedAnalyses::none());
	return true;
}
