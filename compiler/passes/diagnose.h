// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_DIAGNOSE_H
#define LAMBDA_DIAGNOSE_H

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/Module.h"

namespace lambda
{

// Reports an error at the author's line that an instruction comes from. clang goes on, and fails at the end.
void refuse(llvm::Instruction &, const llvm::Twine &message);

// Reports an error at the line where a function or a variable is declared.
void refuse(llvm::Module &, llvm::DIFile *, unsigned line, const llvm::Twine &);

// The author's line that a line of the SDK was inlined into, else the line itself.
llvm::DILocation *authorsPlace(llvm::DILocation *);

// Whether an instruction comes from one of the author's lines.
bool isAuthors(const llvm::Instruction &);

// Whether code is the SDK's own code for the NIC, which is written for the verifier.
bool isOfSdk(const llvm::DebugLoc &);

} // namespace lambda

#endif
