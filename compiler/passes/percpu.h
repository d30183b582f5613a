// SPDX-License-Identifier: Apache-2.0
// Memory of which each CPU has a part of its own. How many parts there are is known when a program is loaded (package compiler/check/percpu
// rewrites it then), so that what depends on it is the address of a record in a section of its own until then.
#ifndef LAMBDA_PERCPU_H
#define LAMBDA_PERCPU_H

#include "llvm/IR/IRBuilder.h"

namespace lambda
{

// bpf_get_smp_processor_id() (include/uapi/linux/bpf.h).
const uint64_t getProcessor = 8;

// The number fixed + each * parts.
llvm::Value *byCopies(llvm::IRBuilder<> &, int64_t fixed, uint64_t each);

// Where the running CPU's part begins, counted from the first part.
llvm::Value *runningCopy(llvm::IRBuilder<> &, uint64_t size);

// Has a map, which is compiled with one part at its end, grow by size for each further one.
void growByCopies(llvm::GlobalVariable &map, uint64_t size);

} // namespace lambda

#endif
