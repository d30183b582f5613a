// SPDX-License-Identifier: Apache-2.0
#include "passes.h"

void lambda::addSoftFloat(llvm::ModulePassManager &)
{
}
