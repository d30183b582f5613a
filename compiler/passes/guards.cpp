// SPDX-License-Identifier: Apache-2.0
#include "memory.h"
#include "percpu.h"
#include "remarks.h"
#include "verdicts.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;
using namespace lambda;

Value *lambda::makeOpaque(IRBuilder<> &at, Value *value)
{
	auto *type = FunctionType::get(value->getType(), { value->getType() }, false);

	return at.CreateCall(type, InlineAsm::get(type, "", "=r,0", /*hasSideEffects=*/true), { value });
}

BasicBlock *lambda::makeFault(Function &function, unsigned fault)
{
	auto *block = BasicBlock::Create(function.getContext(), "fault", &function);
	IRBuilder<> at(block);

	at.CreateRet(ConstantInt::get(function.getReturnType(), LN_VERDICT_OF(fault)));
	return block;
}

// If malloc() failed in this request, an access out of bounds is reported as a lack of memory: its NULL is the likely reason.
BasicBlock *Guards::makeOutside()
{
	auto *block = BasicBlock::Create(function.getContext(), "outside", &function);
	IRBuilder<> at(block);
	Type *type = function.getReturnType();
	Value *verdict = ConstantInt::get(type, LN_VERDICT_OF(LN_FAULT_BOUNDS));

	for (GlobalVariable *variable : layout.requestVariables()) {
		if (!variable->getName().starts_with("lambda_heap"))
			continue;
		Value *number = at.CreateAdd(numbers.ownCopy(), at.getInt64(layout.at(variable)));
		Value *used = at.CreateLoad(at.getInt64Ty(), at.CreatePtrAdd(layout.memory(), number));
		Value *refused = at.CreateTrunc(used, at.getInt1Ty()); // LAMBDA_HEAP_REFUSED of sdk/lambda_heap.h
		verdict = at.CreateSelect(refused, ConstantInt::get(type, LN_VERDICT_OF(LN_FAULT_MEMORY)), verdict);
	}
	at.CreateRet(verdict);
	return block;
}

Guards::Guards(Function &function, Layout &layout, Numbers &numbers, DominatorTree &tree, VerifiedRanges ranges)
    : function(function), layout(layout), numbers(numbers), tree(tree), ranges(ranges)
{
}

uint64_t Guards::room(Place place) const
{
	if (place.variable)
		return sizeOf(place.variable, function.getParent()->getDataLayout());
	return layout.size();
}

Value *Guards::limit(IRBuilder<> &at, Place place, uint64_t less) const
{
	return byCopies(at, int64_t(room(place) - layout.copySize() * !place.variable - less),
			place.variable ? 0 : layout.copySize());
}

// Whether an access needs no guard: the verifier sees that it is within its variable.
bool Guards::proven(const Access &access)
{
	const Number &number = access.number;
	uint64_t size = room(access.place);

	if (!access.place.variable || access.size > size)
		return false;
	if (!number.root)
		return number.offset >= 0 && uint64_t(number.offset) <= size - access.size;
	ConstantRange range = ranges.of(number.root, access.inst);
	range = range.add(ConstantRange(APInt(64, number.offset, true)));
	return range.getUnsignedMax().ule(size - access.size);
}

Guards::Guard *Guards::find(const Access &access)
{
	int64_t lo = access.number.offset, hi = lo + int64_t(access.size);
	BasicBlock *block = access.inst->getParent();

	for (auto &guard : reverse(guards)) {
		if (guard->root != access.number.root || guard->place != access.place)
			continue;
		if (guard->lo <= lo && hi <= guard->hi && tree.dominates(guard->block, block))
			return guard.get();
		// A basic block runs as a whole: a guard at its first access can also cover the later ones.
		int64_t from = std::min(lo, guard->lo), to = std::max(hi, guard->hi);
		if (guard->block == block && uint64_t(to - from) <= room(access.place)) {
			guard->lo = from;
			guard->hi = to;
			return guard.get();
		}
	}
	guards.push_back(std::make_unique<Guard>(Guard{ access.place, access.number.root, lo, hi, block, {} }));
	return guards.back().get();
}

void Guards::add(const Access &access)
{
	if (proven(access))
		direct.push_back(access);
	else
		find(access)->accesses.push_back(access);
}

void Guards::faultIf(Value *wrong, Instruction *before)
{
	BasicBlock *block = before->getParent(), *rest = block->splitBasicBlock(before->getIterator());

	if (!faultBlock)
		faultBlock = makeOutside();
	block->getTerminator()->eraseFromParent();
	IRBuilder<>(block).CreateCondBr(wrong, faultBlock, rest,
					MDBuilder(function.getContext()).createUnlikelyBranchWeights());
}

// The verifier accepts an atomic operation only at a multiple of its size that it can see. Any other address is a fault.
Value *Guards::aligned(const Access &access, Value *number, int64_t distance)
{
	IRBuilder<> at(access.inst);
	Value *sum = at.CreateAdd(number, at.getInt64(distance));

	faultIf(at.CreateIsNotNull(at.CreateAnd(sum, at.getInt64(access.size - 1))), access.inst);
	at.SetInsertPoint(access.inst);
	return at.CreateAnd(makeOpaque(at, sum), at.getInt64(-int64_t(access.size)));
}

// Gives an instruction its address: the variable's, plus a number, plus a constant.
void Guards::place(const Access &access, Value *number, int64_t distance)
{
	if (number && (isa<AtomicRMWInst>(access.inst) || isa<AtomicCmpXchgInst>(access.inst))) {
		number = aligned(access, number, distance);
		distance = 0;
	}
	IRBuilder<> at(access.inst);
	Value *variable = access.place.variable, *address = variable;

	if (!variable || layout.has(variable))
		address = layout.memory();
	// Constants come last: they go into the instruction, and many accesses share the sum before them.
	if (variable && layout.isOwn(variable)) {
		address = at.CreatePtrAdd(address, numbers.ownCopy());
		distance += layout.at(variable);
	}
	if (number)
		address = at.CreatePtrAdd(address, number);
	if (distance)
		address = at.CreatePtrAdd(address, at.getInt64(distance));
	access.inst->setOperand(access.operand, address);
	// All machines that run such BPF programs can load words from unaligned addresses, which BPF's code generator does not know.
	Align natural(PowerOf2Ceil(std::min<uint64_t>(access.size, 8)));
	if (auto *load = dyn_cast<LoadInst>(access.inst))
		load->setAlignment(std::max(load->getAlign(), natural));
	else if (auto *store = dyn_cast<StoreInst>(access.inst))
		store->setAlignment(std::max(store->getAlign(), natural));
	else if (auto *copy = dyn_cast<AnyMemIntrinsic>(access.inst))
		copy->setDestAlignment(Align(8));
	if (auto *copy = dyn_cast<AnyMemTransferInst>(access.inst))
		copy->setSourceAlignment(Align(8));
}

std::string Guards::whyOf(const Guard &guard) const
{
	std::string accesses =
		std::to_string(guard.accesses.size()) + (guard.accesses.size() == 1 ? " access" : " accesses");

	if (!guard.place.variable)
		return accesses + " through a pointer that was stored";
	StringRef name = guard.place.variable->getName();
	return accesses + " of " + (name.empty() ? "a local" : name.str()) + " at an index that may be too large";
}

void Guards::emit(Guard &guard)
{
	Instruction *first = guard.accesses.front().inst;
	uint64_t low = guard.place.variable ? 0 : GuardBytes; // NULL and what follows it
	uint64_t size = room(guard.place) - low, span = guard.hi - guard.lo;
	IRBuilder<> at(first);
	Value *from = guard.root ? guard.root : at.getInt64(0);
	Value *number = makeOpaque(at, at.CreateAdd(from, at.getInt64(guard.lo - int64_t(low))));
	Remark(*function.getParent(), "check")
		.with("state", "inserted")
		.with("why", whyOf(guard))
		.at(first->getDebugLoc());
	Value *outside = span > size ? at.getTrue() : at.CreateICmpUGT(number, limit(at, guard.place, low + span));

	faultIf(outside, first);
	for (const Access &access : guard.accesses)
		place(access, number, access.number.offset - guard.lo + int64_t(low));
}

// Whether an address is that of a global, or at a constant distance from it, and may stay as it is.
static bool isPlain(const Value *address)
{
	while (auto *gep = dyn_cast<GEPOperator>(address))
		address = gep->getPointerOperand();
	return isa<GlobalVariable>(address);
}

void Guards::emit()
{
	for (const Access &access : direct) {
		Remark(*function.getParent(), "check").with("state", "proven").at(access.inst->getDebugLoc());
		bool stays = !layout.has(access.place.variable) && isPlain(access.inst->getOperand(access.operand));
		if (!stays)
			place(access, access.number.root, access.number.offset);
	}
	for (auto &guard : guards)
		emit(*guard);
}
