// SPDX-License-Identifier: Apache-2.0
#ifndef LAMBDA_FAULTS_H
#define LAMBDA_FAULTS_H

#include "llvm/IR/IRBuilder.h"

#include "verdicts.h"

namespace lambda
{

// Ends the request with the error "lambda fault", from any depth of calls. The lambda's own fault, LN_FAULT_OWN, is a call of
// __lambda_fault(), as is abort() of sdk/stdlib.h; each other fault calls a function of its own name. The call becomes a return once all is
// inlined into the program. It ends its block.
void createFault(llvm::IRBuilder<> &, unsigned fault);

} // namespace lambda

#endif
