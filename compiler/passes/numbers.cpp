// SPDX-License-Identifier: Apache-2.0
#include "memory.h"
#include "percpu.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;
using namespace lambda;

// NULL as the number of a pointer into a variable: an offset that no guard lets pass.
static const int64_t nullOffset = int64_t(1) << 62;

Numbers::Numbers(Function &function, const Provenance &provenance, Layout &layout)
    : function(function), provenance(provenance), layout(layout)
{
}

static Value *constant(IRBuilder<> &at, int64_t value)
{
	return at.getInt64(value);
}

Value *Numbers::ownCopy()
{
	if (copyOffset)
		return copyOffset;
	IRBuilder<> at(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());

	copyOffset = at.CreateAdd(runningCopy(at, layout.copySize()), constant(at, layout.firstCopy()), "copy");
	return copyOffset;
}

Number Numbers::ofVariable(Value *variable, Place place)
{
	if (place.kind == Place::Variable)
		return {};
	return { layout.isOwn(variable) ? ownCopy() : nullptr, int64_t(layout.at(variable)) };
}

Number Numbers::of(Value *pointer, Place as)
{
	if (isa<ConstantPointerNull>(pointer) || isa<UndefValue>(pointer))
		return { nullptr, as.kind == Place::Variable ? nullOffset : 0 };
	if (isa<GlobalVariable>(pointer) || isa<AllocaInst>(pointer))
		return ofVariable(pointer, provenance.of(pointer));
	if (auto *expr = dyn_cast<ConstantExpr>(pointer)) {
		APInt offset(64, 0);
		Value *base =
			expr->stripAndAccumulateConstantOffsets(function.getParent()->getDataLayout(), offset, true);
		if (auto *cast = dyn_cast<ConstantExpr>(base))
			if (auto *number = dyn_cast<ConstantInt>(cast->getOperand(0)))
				return { nullptr, int64_t(number->getZExtValue() + offset.getZExtValue()) };
		if (base == expr)
			return { nullptr, nullOffset };
		Number number = of(base, as);
		return { number.root, number.offset + offset.getSExtValue() };
	}
	auto found = known.find(pointer);
	if (found != known.end())
		return found->second;
	Number number = compute(*cast<Instruction>(pointer), provenance.of(pointer));
	return known[pointer] = number;
}

Value *Numbers::value(Value *pointer, Place as, IRBuilder<> &at)
{
	Number number = of(pointer, as);

	if (!number.root)
		return constant(at, number.offset);
	return number.offset ? at.CreateAdd(number.root, constant(at, number.offset)) : number.root;
}

Number Numbers::ofGep(GetElementPtrInst &gep, Place place)
{
	const DataLayout &data = function.getParent()->getDataLayout();
	MapVector<Value *, APInt> variable;
	APInt offset(64, 0);
	IRBuilder<> at(&gep);
	Number number = of(gep.getPointerOperand(), place);

	gep.collectOffset(data, 64, variable, offset);
	number.offset += offset.getSExtValue();
	for (auto &[index, scale] : variable) {
		Value *term = at.CreateSExtOrTrunc(index, at.getInt64Ty());
		if (!scale.isOne())
			term = at.CreateMul(term, at.getInt(scale));
		number.root = number.root ? at.CreateAdd(number.root, term) : term;
	}
	return number;
}

Number Numbers::compute(Instruction &inst, Place place)
{
	IRBuilder<> at(&inst);

	if (auto *gep = dyn_cast<GetElementPtrInst>(&inst))
		return ofGep(*gep, place);
	if (auto *phi = dyn_cast<PHINode>(&inst)) {
		auto *number = at.CreatePHI(at.getInt64Ty(), phi->getNumIncomingValues());
		pending.push_back({ phi, number });
		return { number };
	}
	if (auto *select = dyn_cast<SelectInst>(&inst)) {
		Value *a = value(select->getTrueValue(), place, at), *b = value(select->getFalseValue(), place, at);
		return { at.CreateSelect(select->getCondition(), a, b) };
	}
	if (auto *load = dyn_cast<LoadInst>(&inst)) {
		auto *number = at.CreateAlignedLoad(at.getInt64Ty(), load->getPointerOperand(), load->getAlign(),
						    load->isVolatile());
		number->setDebugLoc(load->getDebugLoc());
		return { number };
	}
	if (auto *cast = dyn_cast<IntToPtrInst>(&inst))
		return { at.CreateZExtOrTrunc(cast->getOperand(0), at.getInt64Ty()) };
	if (isa<FreezeInst>(inst))
		return { at.CreateFreeze(value(inst.getOperand(0), place, at)) };
	if (isOpaque(&inst))
		return { makeOpaque(at, value(inst.getOperand(0), place, at)) };
	if (isMasked(inst))
		return { at.CreateAnd(value(inst.getOperand(0), place, at),
				      at.CreateZExtOrTrunc(inst.getOperand(1), at.getInt64Ty())) };
	return { nullptr, nullOffset };
}

void Numbers::finish()
{
	for (size_t i = 0; i < pending.size(); i++) { // pending grows meanwhile
		auto [phi, number] = pending[i];
		for (auto [pointer, block] : zip(phi->incoming_values(), phi->blocks())) {
			IRBuilder<> at(block->getTerminator());
			number->addIncoming(value(pointer, provenance.of(phi), at), block);
		}
	}
	pending.clear();
}
