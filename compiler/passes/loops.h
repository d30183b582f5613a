// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_LOOPS_H
#define LAMBDA_LOOPS_H

#include "provenance.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/PassManager.h"

namespace lambda
{

// Whether the verifier can walk through all iterations of a function's loops, at a small part of the instructions that it may
// look at in all.
bool isWalkable(llvm::LoopInfo &, llvm::ScalarEvolution &, const Provenance &);

// Whether it can do so on each way that leads to them.
bool isWalkableOnAllWays(llvm::Function &, llvm::LoopInfo &, llvm::ScalarEvolution &, const Provenance &);

// Unrolls short loops of a metered function, so that several iterations share a charge and their accesses a guard.
void unrollShort(llvm::Function &, llvm::FunctionAnalysisManager &);

// Gives loops with several ways in a single one: only of those it is known where they begin, and so where they are to be charged.
bool makeReducible(llvm::Function &, llvm::FunctionAnalysisManager &);

} // namespace lambda

#endif
