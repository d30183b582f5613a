// SPDX-License-Identifier: Apache-2.0
#include "percpu.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

// The sections of records (compiler/check/percpu/percpu.go): of numbers in the code, and of how much the map of a section .data.NAME
// grows. Their names stay: compiled artifacts contain them.
static const char numberSection[] = ".rodata.parts", sizeSections[] = ".rodata.parts.";

static GlobalVariable *record(Module &module, ArrayRef<uint64_t> words, const Twine &section)
{
	Constant *content = ConstantDataArray::get(module.getContext(), words);
	for (GlobalVariable &global : module.globals())
		if (global.getSection() == section.str() && global.getInitializer() == content)
			return &global;
	auto *global = new GlobalVariable(module, content->getType(), /*isConstant=*/true, GlobalValue::InternalLinkage,
					  content, "lambda_percpu");
	global->setSection(section.str());
	global->setAlignment(Align(1)); // nothing is known of the bits of the number that replaces the address
	return global;
}

Value *lambda::byCopies(IRBuilder<> &at, int64_t fixed, uint64_t each)
{
	Module &module = *at.GetInsertBlock()->getModule();

	if (!each)
		return at.getInt64(fixed);
	return ConstantExpr::getPtrToInt(record(module, { uint64_t(fixed), each }, numberSection), at.getInt64Ty());
}

Value *lambda::runningCopy(IRBuilder<> &at, uint64_t size)
{
	auto *helper = ConstantExpr::getIntToPtr(at.getInt64(getProcessor), at.getPtrTy());
	Value *cpu = at.CreateCall(FunctionType::get(at.getInt64Ty(), false), helper);

	if (!size)
		return at.getInt64(0);
	// The number of copies is a power of two. The mask bounds the CPU's number for the verifier.
	return at.CreateMul(at.CreateAnd(cpu, byCopies(at, -1, 1)), at.getInt64(size));
}

void lambda::growByCopies(GlobalVariable &map, uint64_t size)
{
	Module &module = *map.getParent();

	if (size)
		appendToCompilerUsed(module,
				     { record(module, { size }, sizeSections + map.getSection().rsplit('.').second) });
}
