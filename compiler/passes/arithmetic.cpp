// SPDX-License-Identifier: Apache-2.0
// Arithmetic: what BPF's third instruction set lacks, in terms of what it has.
#include "passes.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
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

static Value *lowOf(IRBuilder<> &at, Value *wide)
{
	return at.CreateTrunc(wide, at.getInt64Ty());
}

static Value *highOf(IRBuilder<> &at, Value *wide)
{
	return at.CreateTrunc(at.CreateLShr(wide, 64), at.getInt64Ty());
}

static Value *join(IRBuilder<> &at, Value *high, Value *low)
{
	Type *wide = at.getInt128Ty();
	return at.CreateOr(at.CreateZExt(low, wide), at.CreateShl(at.CreateZExt(high, wide), 64));
}

// A product of 64 by 64 bits from products of 32 by 32: its upper and lower half.
static std::pair<Value *, Value *> multiply(IRBuilder<> &at, Value *a, Value *b)
{
	auto half = [&](Value *x, bool upper) {
		return upper ? at.CreateLShr(x, 32) : at.CreateAnd(x, at.getInt64(0xffffffff));
	};
	Value *p00 = at.CreateMul(half(a, false), half(b, false)), *p01 = at.CreateMul(half(a, false), half(b, true));
	Value *p10 = at.CreateMul(half(a, true), half(b, false)), *p11 = at.CreateMul(half(a, true), half(b, true));
	Value *middle = at.CreateAdd(at.CreateAdd(half(p00, true), half(p01, false)), half(p10, false));
	Value *top =
		at.CreateAdd(at.CreateAdd(p11, half(p01, true)), at.CreateAdd(half(p10, true), half(middle, true)));

	return { top, at.CreateMul(a, b) };
}

static Value *expandProduct(IRBuilder<> &at, Value *a, Value *b)
{
	Value *al = lowOf(at, a), *bl = lowOf(at, b);
	auto [top, low] = multiply(at, al, bl);
	Value *mixed = at.CreateAdd(at.CreateMul(highOf(at, a), bl), at.CreateMul(al, highOf(at, b)));

	return join(at, at.CreateAdd(top, mixed), low);
}

// A shift of 128 bits by a variable, from shifts of 64 bits by less than 64.
static Value *expandShift(IRBuilder<> &at, BinaryOperator &op)
{
	Value *low = lowOf(at, op.getOperand(0)), *high = highOf(at, op.getOperand(0)),
	      *by = lowOf(at, op.getOperand(1));
	Value *within = at.CreateAnd(by, 63), *rest = at.CreateXor(within, 63), *zero = at.getInt64(0);
	Value *far = at.CreateICmpUGE(by, at.getInt64(64));

	if (op.getOpcode() == Instruction::Shl) {
		Value *l = at.CreateShl(low, within);
		Value *h = at.CreateOr(at.CreateShl(high, within), at.CreateLShr(at.CreateLShr(low, 1), rest));
		return join(at, at.CreateSelect(far, l, h), at.CreateSelect(far, zero, l));
	}
	bool isSigned = op.getOpcode() == Instruction::AShr;
	Value *h = isSigned ? at.CreateAShr(high, within) : at.CreateLShr(high, within);
	Value *l = at.CreateOr(at.CreateLShr(low, within), at.CreateShl(at.CreateShl(high, 1), rest));
	return join(at, at.CreateSelect(far, isSigned ? signOf(at, high) : zero, h), at.CreateSelect(far, h, l));
}

// Whether a product of 64 or 128 bits overflows, and its low bits.
static std::pair<Value *, Value *> multiplyChecked(IRBuilder<> &at, Value *a, Value *b)
{
	if (a->getType()->isIntegerTy(64)) {
		auto [top, low] = multiply(at, a, b);
		return { low, at.CreateIsNotNull(top) };
	}
	Value *al = lowOf(at, a), *ah = highOf(at, a), *bl = lowOf(at, b), *bh = highOf(at, b);
	auto [top, low] = multiply(at, al, bl);
	auto [over1, mixed1] = multiply(at, ah, bl);
	auto [over2, mixed2] = multiply(at, al, bh);
	Value *sum = at.CreateAdd(top, mixed1), *all = at.CreateAdd(sum, mixed2);
	Value *over = at.CreateOr(at.CreateAnd(at.CreateIsNotNull(ah), at.CreateIsNotNull(bh)),
				  at.CreateIsNotNull(at.CreateOr(over1, over2)));
	over = at.CreateOr(over, at.CreateOr(at.CreateICmpULT(sum, top), at.CreateICmpULT(all, sum)));
	return { join(at, all, low), over };
}

// llvm.umul.with.overflow and llvm.smul.with.overflow. LLVM also turns comparisons that ask whether a product overflows into these.
static Value *expandChecked(IRBuilder<> &at, WithOverflowInst &op)
{
	Value *a = op.getLHS(), *b = op.getRHS(), *product, *over;

	if (op.isSigned()) {
		Value *signA = signOf(at, a), *signB = signOf(at, b), *sign = at.CreateXor(signA, signB);
		std::tie(product, over) = multiplyChecked(at, negateBy(at, a, signA), negateBy(at, b, signB));
		product = negateBy(at, product, sign);
		// The product has the right sign, or is zero.
		Value *wrong = at.CreateICmpSLT(at.CreateXor(product, sign), ConstantInt::get(a->getType(), 0));
		over = at.CreateOr(over, at.CreateAnd(wrong, at.CreateIsNotNull(product)));
	} else {
		std::tie(product, over) = multiplyChecked(at, a, b);
	}
	Value *both = at.CreateInsertValue(PoisonValue::get(op.getType()), product, 0);
	return at.CreateInsertValue(both, over, 1);
}

// Calls a function of sdk/lambda_wide.h.
static Value *callWide(IRBuilder<> &at, const char *name, ArrayRef<Value *> args)
{
	Module &module = *at.GetInsertBlock()->getModule();
	SmallVector<Type *> types(args.size(), at.getInt64Ty());
	CallInst *made =
		at.CreateCall(module.getOrInsertFunction(name, FunctionType::get(at.getInt64Ty(), types, false)), args);
	made->setDoesNotAccessMemory();
	made->setDoesNotThrow();
	made->addFnAttr(Attribute::WillReturn);
	return made;
}

static Value *expandWide(IRBuilder<> &at, Value *a, Value *b, bool remainder)
{
	Value *bh = highOf(at, b), *bl = lowOf(at, b), *ah = highOf(at, a);
	Value *high = callWide(at, "lambda_u128_div_high", { ah, bh, bl });
	Value *quotient = join(at, high, callWide(at, "lambda_u128_div_low", { ah, lowOf(at, a), bh, bl }));
	return remainder ? at.CreateSub(a, expandProduct(at, quotient, b)) : quotient;
}

// C11 6.5.5p6: quotients are truncated towards zero, and a remainder has the sign of the dividend.
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
	bool remainder = division.getOpcode() == Instruction::SRem;
	Value *unsignedOne = width == 128 ? expandWide(at, absA, absB, remainder)
			     : remainder  ? at.CreateURem(absA, absB)
					  : at.CreateUDiv(absA, absB);
	return negateBy(at, unsignedOne, remainder ? signA : at.CreateXor(signA, signB));
}

static Value *expandOperator(BinaryOperator &op)
{
	unsigned width = op.getType()->getScalarSizeInBits();
	IRBuilder<> at(&op);

	if (op.getType()->isVectorTy())
		return nullptr;
	Value *a = op.getOperand(0), *b = op.getOperand(1);
	switch (op.getOpcode()) {
	case Instruction::SDiv:
	case Instruction::SRem:
		return width <= 64 || width == 128 ? expandSigned(at, op) : nullptr;
	case Instruction::UDiv:
	case Instruction::URem:
		return width == 128 ? expandWide(at, a, b, op.getOpcode() == Instruction::URem) : nullptr;
	case Instruction::Mul:
		return width == 128 ? expandProduct(at, a, b) : nullptr;
	case Instruction::Shl:
	case Instruction::LShr:
	case Instruction::AShr:
		return width == 128 && !isa<Constant>(b) ? expandShift(at, op) : nullptr;
	default:
		return nullptr;
	}
}

static Value *expand(Instruction &inst)
{
	if (auto *op = dyn_cast<BinaryOperator>(&inst))
		return expandOperator(*op);
	auto *checked = dyn_cast<WithOverflowInst>(&inst);
	if (!checked || checked->getBinaryOp() != Instruction::Mul)
		return nullptr;
	unsigned width = checked->getLHS()->getType()->getScalarSizeInBits();
	IRBuilder<> at(checked);
	return width == 64 || width == 128 ? expandChecked(at, *checked) : nullptr;
}

static bool expandAll(Module &module)
{
	bool changed = false;

	for (Function &function : module) {
		for (Instruction &inst : make_early_inc_range(instructions(function))) {
			Value *now = expand(inst);
			if (!now)
				continue;
			inst.replaceAllUsesWith(now);
			inst.eraseFromParent();
			changed = true;
		}
	}
	return changed;
}

PreservedAnalyses ArithmeticPass::run(Module &module, ModuleAnalysisManager &)
{
	bool changed = expandAll(module);

	if (module.getFunction("lambda_u128_div_high")) {
		lambda::linkRuntime(module);
		expandAll(module); // products in the linked functions
	}
	return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

void lambda::addArithmetic(ModulePassManager &passes)
{
	passes.addPass(ArithmeticPass());
}
