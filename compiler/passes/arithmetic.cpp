// SPDX-License-Identifier: Apache-2.0
// Arithmetic: what BPF's third instruction set lacks, in terms of what it has.
#include "passes.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace
{

class ArithmeticPass : public PassInfoMixin<ArithmeticPass>
{
      public:
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);
};

} // namespace

// All ones for a negative number, else zero.
static Value *signOf(IRBuilder<> &at, Value *value)
{
	return at.CreateAShr(value, value->getType()->getScalarSizeInBits() - 1);
}

// x if sign is zero, -x if it is all ones.
static Value *negateBy(IRBuilder<> &at, Value *value, Value *sign)
{
	return at.CreateSub(at.CreateXor(value, sign), sign);
}

// C11 6.5.5p6: quotients are cut off towards zero, and a remainder has the sign of the dividend.
static Value *expandSigned(IRBuilder<> &at, BinaryOperator &division)
{
	Value *a = division.getOperand(0), *b = division.getOperand(1), *signA = signOf(at, a);
	unsigned width = a->getType()->getScalarSizeInBits();
	const APInt *power;

	if (PatternMatch::match(b, PatternMatch::m_Power2(power)) && power->isStrictlyPositive()) {
		unsigned shift = power->logBase2();
		Value *bias = shift ? at.CreateLShr(signA, width - shift) : ConstantInt::get(a->getType(), 0);
		Value *quotient = at.CreateAShr(at.CreateAdd(a, bias), shift);
		return division.getOpcode() == Instruction::SDiv ? quotient
								 : at.CreateSub(a, at.CreateShl(quotient, shift));
	}
	Value *signB = signOf(at, b), *absA = negateBy(at, a, signA), *absB = negateBy(at, b, signB);
	if (division.getOpcode() == Instruction::SDiv)
		return negateBy(at, at.CreateUDiv(absA, absB), at.CreateXor(signA, signB));
	return negateBy(at, at.CreateURem(absA, absB), signA);
}

// A product of 128 bits from products of 32 by 32.
static Value *expandProduct(IRBuilder<> &at, BinaryOperator &product)
{
	Type *wide = product.getType(), *word = at.getInt64Ty();
	Value *a = product.getOperand(0), *b = product.getOperand(1);
	auto low = [&](Value *x) { return at.CreateTrunc(x, word); };
	auto high = [&](Value *x) { return at.CreateTrunc(at.CreateLShr(x, 64), word); };
	auto half = [&](Value *x, bool upper) {
		return upper ? at.CreateLShr(x, 32) : at.CreateAnd(x, at.getInt64(0xffffffff));
	};
	Value *al = low(a), *bl = low(b);
	Value *p00 = at.CreateMul(half(al, false), half(bl, false)),
	      *p01 = at.CreateMul(half(al, false), half(bl, true));
	Value *p10 = at.CreateMul(half(al, true), half(bl, false)), *p11 = at.CreateMul(half(al, true), half(bl, true));
	Value *middle = at.CreateAdd(at.CreateAdd(half(p00, true), half(p01, false)), half(p10, false));
	Value *top =
		at.CreateAdd(at.CreateAdd(p11, half(p01, true)), at.CreateAdd(half(p10, true), half(middle, true)));

	top = at.CreateAdd(top, at.CreateAdd(at.CreateMul(high(a), bl), at.CreateMul(al, high(b))));
	Value *bottom = at.CreateMul(al, bl);
	return at.CreateOr(at.CreateZExt(bottom, wide), at.CreateShl(at.CreateZExt(top, wide), 64));
}

static Value *expand(BinaryOperator &op)
{
	unsigned width = op.getType()->getScalarSizeInBits();
	IRBuilder<> at(&op);

	if (op.getType()->isVectorTy())
		return nullptr;
	if ((op.getOpcode() == Instruction::SDiv || op.getOpcode() == Instruction::SRem) && width <= 64)
		return expandSigned(at, op);
	if (op.getOpcode() == Instruction::Mul && width == 128)
		return expandProduct(at, op);
	return nullptr;
}

PreservedAnalyses ArithmeticPass::run(Module &module, ModuleAnalysisManager &)
{
	bool changed = false;

	for (Function &function : module) {
		for (Instruction &inst : make_early_inc_range(instructions(function))) {
			auto *op = dyn_cast<BinaryOperator>(&inst);
			Value *now = op ? expand(*op) : nullptr;
			if (!now)
				continue;
			op->replaceAllUsesWith(now);
			op->eraseFromParent();
			changed = true;
		}
	}
	return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

void lambda::addArithmetic(ModulePassManager &passes)
{
	passes.addPass(ArithmeticPass());
}
