// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_ATOMICS_H
#define LAMBDA_ATOMICS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Instructions.h"

namespace lambda
{

// A store that updates what it read: variable = variable op value.
class Update
{
      public:
	explicit Update(llvm::StoreInst &);

	// Why the update cannot be one atomic operation; "" if it can.
	llvm::StringRef whyNot() const
	{
		return why;
	}

	// Replaces the store by an atomic operation.
	void makeAtomic();

      private:
	bool findOperation();
	bool isOnlyUsedBehind() const;
	llvm::StringRef findWhyNot();

	llvm::StoreInst &store;
	llvm::LoadInst *load = nullptr;
	llvm::BinaryOperator *operation = nullptr;
	llvm::Value *by = nullptr; // the other operand
	llvm::SmallVector<llvm::Instruction *, 4> chain; // from what is read to what is written, without load and store
	llvm::StringRef why;
};

// Whether a value is computed from the result of a load or an atomic operation that satisfies a predicate.
bool dependsOn(llvm::Value *, llvm::function_ref<bool(llvm::Instruction &)> isRead);

} // namespace lambda

#endif
