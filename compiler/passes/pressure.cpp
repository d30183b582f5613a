// SPDX-License-Identifier: Apache-2.0
// Pressure: if more values are live at once than registers and the kernel's 512 bytes of stack hold, some go to memory of the running
// CPU. There the verifier forgets what it knows of a value, so only data goes there, and nothing that addresses are computed from.
#include "layout.h"
#include "percpu.h"
#include "passes.h"
#include "program.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace lambda;

// How many of the 64 words of stack may hold values that are live at once. The rest is for what the code generator adds: fuel, copies
// that the register allocator makes, calls. If it needs more, package compiler tries again with fewer words.
static cl::opt<unsigned> stackWords("lambda-stack-words", cl::init(48), cl::Hidden);

namespace
{

// The words that a value takes: an __int128 has two.
static unsigned wordsOf(const Instruction *inst)
{
	return inst->getType()->isIntegerTy(128) ? 2 : 1;
}

static unsigned wordsOf(ArrayRef<Instruction *> list)
{
	unsigned words = 0;

	for (const Instruction *inst : list)
		words += wordsOf(inst);
	return words;
}

// The live ranges of one function's values.
class Liveness
{
      public:
	explicit Liveness(Function &);

	// The values that are live at the point where most are.
	SmallVector<Instruction *, 64> peak() const;

      private:
	BitVector walk(const BasicBlock &, BitVector live, BitVector *widest) const;
	unsigned words(const BitVector &live) const;
	void use(BitVector &live, const Value *value) const;

	Function &function;
	SmallVector<Instruction *, 256> values;
	BitVector wide; // those of two words
	DenseMap<const Value *, unsigned> number;
	DenseMap<const BasicBlock *, BitVector> out;
};

class PressurePass : public PassInfoMixin<PressurePass>
{
      public:
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);
};

} // namespace

Liveness::Liveness(Function &function) : function(function)
{
	bool changed = true;

	for (Instruction &inst : instructions(function)) {
		if (inst.getType()->isVoidTy() || isa<AllocaInst>(inst))
			continue;
		number[&inst] = values.size();
		values.push_back(&inst);
		wide.resize(values.size());
		wide[values.size() - 1] = wordsOf(&inst) > 1;
	}
	for (BasicBlock &block : function)
		out[&block] = BitVector(values.size());
	while (changed) {
		changed = false;
		for (BasicBlock *block : post_order(&function)) {
			BitVector live(values.size());
			for (BasicBlock *next : successors(block)) {
				live |= walk(*next, out[next], nullptr);
				for (PHINode &phi : next->phis())
					use(live, phi.getIncomingValueForBlock(block));
			}
			changed |= live != out[block];
			out[block] = live;
		}
	}
}

unsigned Liveness::words(const BitVector &live) const
{
	BitVector two = wide;

	two &= live;
	return live.count() + two.count();
}

void Liveness::use(BitVector &live, const Value *value) const
{
	auto found = number.find(value);
	if (found != number.end())
		live.set(found->second);
}

// Walks a basic block from its end up to behind its phis.
BitVector Liveness::walk(const BasicBlock &block, BitVector live, BitVector *widest) const
{
	for (const Instruction &inst : reverse(block)) {
		auto found = number.find(&inst);
		if (found != number.end())
			live.reset(found->second);
		if (!isa<PHINode>(inst) && !isa<DbgInfoIntrinsic>(inst))
			for (const Value *operand : inst.operands())
				use(live, operand);
		if (widest && words(live) > words(*widest))
			*widest = live;
	}
	return live;
}

SmallVector<Instruction *, 64> Liveness::peak() const
{
	SmallVector<Instruction *, 64> list;
	BitVector widest(values.size());

	for (BasicBlock &block : function)
		walk(block, out.find(&block)->second, &widest);
	for (unsigned i : widest.set_bits())
		list.push_back(values[i]);
	return list;
}

// What the verifier judges: addresses, helpers' arguments, and all that they are computed from.
static SmallPtrSet<Value *, 32> judged(Function &function)
{
	SmallPtrSet<Value *, 32> set;
	SmallVector<Value *, 64> work;

	for (Instruction &inst : instructions(function)) {
		auto *call = dyn_cast<CallBase>(&inst);
		if (inst.getType()->isPointerTy() || isa<GetElementPtrInst>(inst) ||
		    (call && !isa<IntrinsicInst>(call) && !call->isInlineAsm()))
			append_range(work, inst.operands());
	}
	while (!work.empty()) {
		auto *inst = dyn_cast<Instruction>(work.pop_back_val());
		auto *call = dyn_cast_or_null<CallBase>(inst);
		if (!inst || !set.insert(inst).second)
			continue;
		if (isa<BinaryOperator, CastInst, SelectInst, PHINode, FreezeInst>(inst) ||
		    (call && call->isInlineAsm()))
			append_range(work, inst->operands());
	}
	return set;
}

// How often a value is written and read, where a loop counts as ten times.
static uint64_t costOf(Instruction &inst, LoopInfo &loops)
{
	auto weigh = [&](BasicBlock *block) {
		uint64_t weight = 1;
		for (unsigned depth = loops.getLoopDepth(block); depth; depth--)
			weight *= 10;
		return weight;
	};
	uint64_t cost = weigh(inst.getParent());

	for (User *user : inst.users())
		cost += weigh(cast<Instruction>(user)->getParent());
	return cost;
}

static bool isData(const Instruction *inst, const SmallPtrSet<Value *, 32> &judged)
{
	auto *compare = dyn_cast<ICmpInst>(inst); // the verifier learns from branches on it

	if (compare && (compare->getOperand(0)->getType()->isPointerTy() || judged.count(compare->getOperand(0)) ||
			judged.count(compare->getOperand(1))))
		return false;
	return inst->getType()->isIntegerTy() && inst->getType()->getIntegerBitWidth() <= 128 && !judged.count(inst);
}

// Reads a slot back just before its use, which shortens the live range. A value that several phis take was read at the end of the block,
// and these phis are slots by now.
static void sinkReloads(AllocaInst *slot)
{
	for (User *user : slot->users()) {
		auto *load = dyn_cast<LoadInst>(user);
		auto *use = load && load->hasOneUse() ? cast<Instruction>(load->user_back()) : nullptr;
		if (!use || isa<PHINode>(use) || use->getParent() != load->getParent())
			continue;
		auto between = make_range(load->getIterator(), use->getIterator());
		if (none_of(between, [&](Instruction &inst) {
			    auto *store = dyn_cast<StoreInst>(&inst);
			    return store && store->getPointerOperand() == slot;
		    }))
			load->moveBefore(use);
	}
}

// Which values may go to memory, and the loads that read them back.
struct Choice {
	SmallPtrSet<Value *, 32> judged;
	SmallPtrSet<Value *, 32> reloads;

	// What has to go to memory so that a value is not live: itself, or the phi for which it is read back at a block's end.
	Instruction *of(Instruction *inst) const
	{
		if (reloads.count(inst))
			inst = inst->hasOneUse() ? dyn_cast<PHINode>(inst->user_back()) : nullptr;
		return inst && isData(inst, judged) && !reloads.count(inst) ? inst : nullptr;
	}
};

// Moves a value to memory. A phi becomes one load, which has the phi's live range and may have to go to memory itself. Any other value
// is read back at each use.
static AllocaInst *moveToSlot(Instruction &inst, Choice &choice)
{
	if (auto *phi = dyn_cast<PHINode>(&inst))
		return DemotePHIToStack(phi);
	AllocaInst *slot = DemoteRegToStack(inst);
	for (User *user : slot->users())
		if (isa<LoadInst>(user))
			choice.reloads.insert(user);
	return slot;
}

// Moves the cheapest of the live values to memory until the rest fits.
static SmallVector<AllocaInst *, 32> demote(Function &function, LoopInfo &loops, uint64_t words)
{
	SmallVector<AllocaInst *, 32> slots;
	Choice choice{ judged(function), {} };

	for (;;) {
		SmallVector<Instruction *, 64> live = Liveness(function).peak();
		SmallSetVector<Instruction *, 32> found;
		for (Instruction *inst : live)
			if (Instruction *data = choice.of(inst))
				found.insert(data);
		unsigned needed = wordsOf(live);
		if (needed <= words || found.empty())
			return slots;
		SmallVector<std::pair<uint64_t, unsigned>, 64> data; // by cost
		for (auto [i, inst] : enumerate(found))
			data.push_back({ costOf(*inst, loops), i });
		sort(data);
		for (auto [cost, i] : data) {
			if (needed <= words)
				break;
			needed -= wordsOf(found[i]);
			if (AllocaInst *slot = moveToSlot(*found[i], choice))
				slots.push_back(slot);
		}
		for (AllocaInst *slot : slots)
			sinkReloads(slot);
	}
}

// The address of the running CPU's words.
static Value *makeBase(Function &function, uint64_t words)
{
	Module &module = *function.getParent();
	BasicBlock::iterator first = function.getEntryBlock().begin();
	while (isa<AllocaInst>(*first) || (isa<CallInst>(*first) && cast<CallInst>(*first).isInlineAsm()))
		++first; // metering begins the program
	IRBuilder<> at(&*first);
	uint64_t size = alignTo(words * 8, 64); // CPUs share no cache line
	auto *type = ArrayType::get(at.getInt64Ty(), size / 8);
	auto *map = new GlobalVariable(module, type, false, GlobalValue::InternalLinkage, Constant::getNullValue(type),
				       "lambda_words");
	map->setSection((".bss..words_" + function.getName()).str()); // one section for each: copies are at a map's end
	map->setAlignment(Align(64));
	growByCopies(*map, size);

	return at.CreatePtrAdd(map, runningCopy(at, size));
}

static void moveOut(Function &function, ArrayRef<AllocaInst *> slots)
{
	SmallVector<uint64_t, 32> offsets;
	uint64_t end = 0;

	for (AllocaInst *slot : slots) {
		offsets.push_back(end);
		end += alignTo(sizeOf(slot, function.getDataLayout()), 8);
	}
	Value *base = makeBase(function, end / 8);
	for (auto [slot, offset] : zip(slots, offsets)) {
		for (Use &use : make_early_inc_range(slot->uses())) {
			IRBuilder<> at(cast<Instruction>(use.getUser()));
			use.set(at.CreatePtrAdd(base, at.getInt64(offset)));
		}
		slot->eraseFromParent();
	}
}

static uint64_t stackOf(Function &function)
{
	uint64_t bytes = 0;

	for (Instruction &inst : instructions(function))
		if (auto *local = dyn_cast<AllocaInst>(&inst))
			bytes += sizeOf(local, function.getDataLayout());
	return bytes;
}

PreservedAnalyses PressurePass::run(Module &module, ModuleAnalysisManager &manager)
{
	auto &analyses = manager.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();

	for (Function &function : module) {
		if (!isProgram(function))
			continue;
		analyses.invalidate(function, PreservedAnalyses::none());
		uint64_t taken = stackOf(function) / 8;
		auto slots = demote(function, analyses.getResult<LoopAnalysis>(function),
				    taken < stackWords ? stackWords - taken : 0);
		if (!slots.empty())
			moveOut(function, slots);
	}
	return PreservedAnalyses::none();
}

void lambda::addPressure(ModulePassManager &passes)
{
	ScalarizerPassOptions all; // a vector is as many words as it has elements
	all.ScalarizeLoadStore = true;
	passes.addPass(createModuleToFunctionPassAdaptor(ScalarizerPass(all)));
	passes.addPass(PressurePass());
}
