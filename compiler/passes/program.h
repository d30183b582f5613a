// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_PROGRAM_H
#define LAMBDA_PROGRAM_H

#include "llvm/IR/Module.h"

namespace lambda
{

// Whether the kernel calls a function. Everything that touches memory is inlined into such a program.
bool isProgram(const llvm::Function &);

// Whether a module is ordinary C, which the passes rewrite for the verifier. Code that is written for the verifier stays as it is.
bool isOrdinary(const llvm::Module &);
void setOrdinary(llvm::Module &);

// Whether the loops of a module are metered; the verifier walks through the others.
bool isMetered(const llvm::Module &);
void setMetered(llvm::Module &);

// Whether a global only says how many bytes recursion may take (lambda_frames in sdk/lambda_entry.h).
bool saysFrames(const llvm::Value &);

void removeMarks(llvm::Module &);

} // namespace lambda

#endif
