// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_LOOPS_H
#define LAMBDA_LOOPS_H

#include "provenance.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/PassManager.h"

namespace lambda
{

// Whether the verifier can walk all iterations of a function's loops with a small share of the instructions that it may walk in all.
bool isWalkable(llvm::LoopInfo &, llvm::ScalarEvolution &, const Provenance &);

// Whether it can do so on each path that leads to them.
bool isWalkableOnAllPaths(llvm::Function &, llvm::LoopInfo &, llvm::ScalarEvolution &, const Provenance &);

// Unrolls short loops of a metered function, so that several iterations share a charge and their accesses a guard.
void unrollShort(llvm::Function &, llvm::FunctionAnalysisManager &);

// Gives loops with several entries a single header, where they are charged.
bool makeReducible(llvm::Function &, llvm::FunctionAnalysisManager &);

} // namespace lambda

#endif
