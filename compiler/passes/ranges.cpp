// SPDX-License-Identifier: Apache-2.0
#include "ranges.h"
#include "provenance.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsBPF.h"
#include "llvm/IR/Operator.h"

using namespace llvm;
using namespace lambda;

static const unsigned depthMax = 8;

// Whether the verifier sees that a value narrower than a register fits its type. LLVM's code generator knows that a quotient or a
// remainder needs no truncation; the verifier sees only the product that it was computed from.
static bool isCut(Value *value, SmallPtrSetImpl<Value *> &seen)
{
	if (isa<LoadInst>(value) || isa<ConstantInt>(value) || isOpaque(value) || !seen.insert(value).second)
		return true;
	auto *inst = dyn_cast<Instruction>(value);
	if (!inst || seen.size() > 32)
		return false;
	auto *select = dyn_cast<SelectInst>(inst);
	if (!isa<CastInst>(inst) && !isa<PHINode>(inst) && !select && !(inst->isBinaryOp() && !inst->isIntDivRem()))
		return false;
	return all_of(drop_begin(inst->operands(), select ? 1 : 0), [&](Value *part) { return isCut(part, seen); });
}

static bool isCut(Value *value)
{
	SmallPtrSet<Value *, 8> seen;

	return value->getType()->getScalarSizeInBits() >= 32 || isCut(value, seen);
}

ConstantRange VerifiedRanges::ofPhi(PHINode &phi, Instruction *at, unsigned depth)
{
	ConstantRange range = ConstantRange::getEmpty(phi.getType()->getScalarSizeInBits());

	if (!evolution)
		return range.inverse();
	if (evolution->isSCEVable(phi.getType()))
		return evolution->getUnsignedRange(evolution->getSCEV(&phi));
	for (Value *value : phi.incoming_values()) {
		auto *constant = dyn_cast<ConstantInt>(value);
		if (!constant)
			return range.inverse();
		range = range.unionWith(ConstantRange(constant->getValue()));
	}
	return range;
}

ConstantRange VerifiedRanges::of(Value *value, Instruction *at, unsigned depth)
{
	unsigned width = value->getType()->getScalarSizeInBits();
	ConstantRange full = ConstantRange::getFull(width);

	if (auto *constant = dyn_cast<ConstantInt>(value))
		return ConstantRange(constant->getValue());
	if (isOpaque(value))
		return values.getConstantRange(value, at, false);
	if (auto *call = dyn_cast<IntrinsicInst>(value))
		return call->getIntrinsicID() == Intrinsic::bpf_passthrough ? of(call->getArgOperand(1), at, depth)
									    : full;
	auto *op = dyn_cast<Operator>(value);
	if (!op || depth > depthMax)
		return full;
	auto operand = [&](unsigned i) { return of(op->getOperand(i), at, depth + 1); };
	switch (op->getOpcode()) {
	case Instruction::PHI:
		return ofPhi(*cast<PHINode>(op), at, depth);
	case Instruction::ZExt:
		return isCut(op->getOperand(0)) ? operand(0).zeroExtend(width) : full;
	case Instruction::And:
		return operand(0).binaryAnd(operand(1));
	case Instruction::LShr: // the verifier knows nothing of a shift by a register
		return isa<ConstantInt>(op->getOperand(1)) ? operand(0).lshr(operand(1)) : full;
	case Instruction::Shl:
		return isa<ConstantInt>(op->getOperand(1)) ? operand(0).shl(operand(1)) : full;
	case Instruction::Mul:
		return operand(0).multiply(operand(1));
	case Instruction::Add:
		return operand(0).add(operand(1));
	case Instruction::Or:
		return cast<PossiblyDisjointInst>(op)->isDisjoint() ? operand(0).add(operand(1)) : full;
	case Instruction::Select:
		return evolution ? operand(1).unionWith(operand(2)) : full;
	default:
		return full;
	}
}
