// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_RANGES_H
#define LAMBDA_RANGES_H

#include "llvm/Analysis/LazyValueInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/ConstantRange.h"

namespace lambda
{

// The range of a value that the kernel's verifier is sure to know: from the operations that compute it, and from comparisons of the
// results of lambda_opaque(). LLVM knows more, by reasoning that the verifier cannot follow.
class VerifiedRanges
{
      public:
	// With evolution, loops are walked iteration by iteration, so that the verifier knows their counters. Without it, loops are metered,
	// and values that depend on the path are made unknown.
	VerifiedRanges(llvm::LazyValueInfo &values, llvm::ScalarEvolution *evolution)
	    : values(values), evolution(evolution)
	{
	}

	llvm::ConstantRange of(llvm::Value *, llvm::Instruction *at, unsigned depth = 0);

      private:
	llvm::ConstantRange ofPhi(llvm::PHINode &, llvm::Instruction *at, unsigned depth);

	llvm::LazyValueInfo &values;
	llvm::ScalarEvolution *evolution;
};

} // namespace lambda

#endif
