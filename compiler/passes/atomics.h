// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_ATOMICS_H
#define LAMBDA_ATOMICS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Instructions.h"

namespace lambda
{

// What a store writes back to where it was read: object = object op value.
class Update
{
      public:
	explicit Update(llvm::StoreInst &);

	// Why it cannot be one atomic operation; "" if it can.
	llvm::StringRef whyNot() const
	{
		return why;
	}

	// Puts the atomic operation in its place. The store is gone then.
	void makeAtomic();

      private:
	bool findOperation();
	bool isOnlyUsedBehind() const;
	llvm::StringRef findWhyNot();

	llvm::StoreInst &store;
	llvm::LoadInst *load = nullptr;
	llvm::BinaryOperator *operation = nullptr;
	llvm::Value *by = nullptr; // the other operand
	llvm::SmallVector<llvm::Instruction *, 4> chain; // from what is read to what is written, but for load and store
	llvm::StringRef why;
};

// Whether a value is computed from what one of the loads, or atomic operations, that a predicate names gives.
bool dependsOn(llvm::Value *, llvm::function_ref<bool(llvm::Instruction &)> isRead);

} // namespace lambda

#endif
