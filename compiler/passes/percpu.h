// SPDX-License-Identifier: Apache-2.0
// Per-CPU memory: each CPU has its own copy. The number of copies is known only when a program is loaded. Until then, a number that
// depends on it is the address of a record in a section; package compiler/check/percpu replaces it at load time.
#ifndef LAMBDA_PERCPU_H
#define LAMBDA_PERCPU_H

#include "llvm/IR/IRBuilder.h"

namespace lambda
{

// bpf_get_smp_processor_id() (include/uapi/linux/bpf.h).
const uint64_t getProcessor = 8;

// The number fixed + each * copies.
llvm::Value *byCopies(llvm::IRBuilder<> &, int64_t fixed, uint64_t each);

// Where the running CPU's copy begins, counted from the first copy.
llvm::Value *runningCopy(llvm::IRBuilder<> &, uint64_t size);

// Makes a map, which is compiled with one copy at its end, grow by size for each further copy.
void growByCopies(llvm::GlobalVariable &map, uint64_t size);

} // namespace lambda

#endif
