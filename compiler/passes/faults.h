// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_FAULTS_H
#define LAMBDA_FAULTS_H

#include "llvm/IR/IRBuilder.h"

namespace lambda
{

// Ends the request with the error "lambda fault", from any depth of calls: a call of __lambda_fault(), which sdk/stdlib.h's
// abort() is as well. It becomes a return when all is inlined into the program. The block needs no other end.
void createFault(llvm::IRBuilder<> &);

} // namespace lambda

#endif
