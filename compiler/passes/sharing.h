// SPDX-License-Identifier: Apache-2.0
// Which variables several CPUs, or several threads of a process, share, and which pointers lead there. Unlike Provenance, this runs before
// anything is inlined or in registers.
#ifndef LAMBDA_SHARING_H
#define LAMBDA_SHARING_H

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace lambda
{

// Whether requests on several CPUs write to the same variable. A variable of one request, or a read-only one, is not shared.
bool isShared(const llvm::GlobalVariable &);

// The shared variables that a pointer may point into, as far as values and arguments show. A pointer loaded from memory may point anywhere,
// and is not followed.
llvm::SmallSetVector<llvm::GlobalVariable *, 4> sharedVariables(llvm::Value *pointer);

// Whether two pointers of a function are always equal.
bool isSameAddress(const llvm::Value *, const llvm::Value *);

} // namespace lambda

#endif
