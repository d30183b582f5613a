// SPDX-License-Identifier: Apache-2.0
// Which objects several CPUs, or several threads of a process, have in common, and which pointers lead there. Unlike Provenance, this
// is asked before anything is inlined or in registers.
#ifndef LAMBDA_SHARING_H
#define LAMBDA_SHARING_H

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace lambda
{

// Whether requests on several CPUs write to the same memory of an object. What belongs to one request, or is read only, is not shared.
bool isShared(const llvm::GlobalVariable &);

// The shared objects that a pointer may point into, as far as values and arguments show. What was kept in memory may point anywhere, and
// is not followed.
llvm::SmallSetVector<llvm::GlobalVariable *, 4> sharedVariables(llvm::Value *pointer);

// Whether two pointers of a function are the same wherever both are computed.
bool isSameAddress(const llvm::Value *, const llvm::Value *);

} // namespace lambda

#endif
