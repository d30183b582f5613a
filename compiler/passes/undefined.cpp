// SPDX-License-Identifier: Apache-2.0
// A value that C leaves undefined is whatever its register held before, possibly a kernel address. Where it is stored or passed on, it
// becomes zero.
#include "passes.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace
{

struct Undefined : PassInfoMixin<Undefined> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		for (Function &function : module) {
			for (Instruction &inst : instructions(function)) {
				if (isa<PHINode, SelectInst, StoreInst, ReturnInst>(inst))
					define(inst);
			}
		}
		return PreservedAnalyses::none();
	}

      private:
	static void define(Instruction &inst)
	{
		for (Use &use : inst.operands()) {
			Type *type = use->getType();
			if (isa<UndefValue>(use) && (type->isIntegerTy() || type->isPointerTy()))
				use = Constant::getNullValue(type);
		}
	}
};

} // namespace

void lambda::addUndefined(ModulePassManager &passes)
{
	passes.addPass(Undefined());
}
