// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_RANGES_H
#define LAMBDA_RANGES_H

#include "llvm/Analysis/LazyValueInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/ConstantRange.h"

namespace lambda
{

// What the kernel's verifier surely knows of a value: what follows from the operations that make it, and from comparisons of what
// lambda_opaque() gave. LLVM knows more, by ways that the verifier does not follow.
class VerifiedRanges
{
      public:
	// With evolution, loops are walked iteration by iteration, so that the verifier knows their counters. Without, they are metered,
	// and what depends on the way is made unknown.
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
