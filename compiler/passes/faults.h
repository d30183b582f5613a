// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_FAULTS_H
#define LAMBDA_FAULTS_H

#include "llvm/IR/IRBuilder.h"

#include "verdicts.h"

namespace lambda
{

// Ends the request with the error "lambda fault", from any depth of calls: the lambda's own fault, LN_FAULT_OWN, by a call of
// __lambda_fault(), which sdk/stdlib.h's abort() is as well, others by one of a name of their own. It becomes a return when all is
// inlined into the program. The block needs no other end.
void createFault(llvm::IRBuilder<> &, unsigned fault);

} // namespace lambda

#endif
