// SPDX-License-Identifier: Apache-2.0
// memcpy, memmove and memset as loops: eight bytes at a time, then one by one.
#include "memory.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;
using namespace lambda;

// BPF's code generator does as well with short ones.
static const uint64_t shortMax = 64;

// for (i = from; i != to; i += step) body(i), before an instruction.
static void makeLoop(Value *from, Value *to, Value *step, Instruction *before,
		     function_ref<void(IRBuilder<> &, Value *)> body)
{
	IRBuilder<> at(before);
	Instruction *loop = SplitBlockAndInsertIfThen(at.CreateICmpNE(from, to), before, false);
	BasicBlock *head = loop->getParent(), *preheader = head->getSinglePredecessor();
	BasicBlock *exit = loop->getSuccessor(0);

	at.SetInsertPoint(loop);
	PHINode *index = at.CreatePHI(at.getInt64Ty(), 2);
	body(at, index);
	Value *next = at.CreateAdd(index, step);
	index->addIncoming(from, preheader);
	index->addIncoming(next, head);
	at.CreateCondBr(at.CreateICmpNE(next, to), head, exit);
	loop->eraseFromParent();
}

static void expandForward(Value *to, Value *from, Value *fill, Value *length, Instruction *before)
{
	IRBuilder<> at(before);
	Value *words = at.CreateAnd(length, at.getInt64(~uint64_t(7)));
	Value *pattern = fill ? at.CreateMul(at.CreateZExt(fill, at.getInt64Ty()), at.getInt64(0x0101010101010101))
			      : nullptr;

	auto move = [&](Type *type) {
		return [=](IRBuilder<> &in, Value *index) {
			Value *value = pattern ? in.CreateTrunc(pattern, type)
					       : in.CreateAlignedLoad(type, in.CreatePtrAdd(from, index), Align(1));
			in.CreateAlignedStore(value, in.CreatePtrAdd(to, index), Align(1));
		};
	};
	makeLoop(at.getInt64(0), words, at.getInt64(8), before, move(at.getInt64Ty()));
	makeLoop(words, length, at.getInt64(1), before, move(at.getInt8Ty()));
}

// From the end, so that overlapping bytes are read before they are written.
static void expandBackward(Value *to, Value *from, Value *length, Instruction *before)
{
	IRBuilder<> at(before);

	makeLoop(length, at.getInt64(0), at.getInt64(-1), before, [=](IRBuilder<> &in, Value *index) {
		Value *last = in.CreateAdd(index, in.getInt64(-1));
		Value *value = in.CreateLoad(in.getInt8Ty(), in.CreatePtrAdd(from, last));
		in.CreateStore(value, in.CreatePtrAdd(to, last));
	});
}

static void expand(MemIntrinsic &call)
{
	IRBuilder<> at(&call);
	Value *length = at.CreateZExtOrTrunc(call.getLength(), at.getInt64Ty()), *to = call.getRawDest();

	if (auto *fill = dyn_cast<MemSetInst>(&call)) {
		expandForward(to, nullptr, fill->getValue(), length, &call);
	} else if (isa<MemMoveInst>(call)) {
		Value *from = cast<MemTransferInst>(call).getRawSource();
		Instruction *forward, *backward;
		SplitBlockAndInsertIfThenElse(at.CreateICmpULE(to, from), &call, &forward, &backward);
		expandForward(to, from, nullptr, length, forward);
		expandBackward(to, from, length, backward);
	} else {
		expandForward(to, cast<MemTransferInst>(call).getRawSource(), nullptr, length, &call);
	}
	call.eraseFromParent();
}

void lambda::expandMemoryIntrinsics(Function &function)
{
	SmallVector<MemIntrinsic *, 8> calls;

	for (Instruction &inst : instructions(function)) {
		auto *call = dyn_cast<MemIntrinsic>(&inst);
		auto *length = call ? dyn_cast<ConstantInt>(call->getLength()) : nullptr;
		if (call && !(length && length->getZExtValue() <= shortMax))
			calls.push_back(call);
	}
	for (MemIntrinsic *call : calls)
		expand(*call);
}
