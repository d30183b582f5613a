// SPDX-License-Identifier: Apache-2.0
// Pressure: values that are live at once beyond what registers and the kernel's 512 bytes of stack hold go to memory of the running
// CPU. What the verifier has to know of a value it forgets on that way, so it is data that goes, and not what addresses are made of.
#include "layout.h"
#include "parts.h"
#include "passes.h"
#include "program.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace lambda;

// Of 64 words of stack, what is left for spilled registers: fuel, copies that the register allocator makes, calls.
static const uint64_t stackWords = 48;

namespace
{

// Which values are live where, in one function.
class Liveness
{
      public:
	explicit Liveness(Function &);

	// The values that are live where most are.
	SmallVector<Instruction *, 64> peak() const;

      private:
	BitVector walk(const BasicBlock &, BitVector live, BitVector *widest) const;
	void use(BitVector &live, const Value *value) const;

	Function &function;
	SmallVector<Instruction *, 256> values;
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

void Liveness::use(BitVector &live, const Value *value) const
{
	auto found = number.find(value);
	if (found != number.end())
		live.set(found->second);
}

// From a block's end to its beginning, behind its phis.
BitVector Liveness::walk(const BasicBlock &block, BitVector live, BitVector *widest) const
{
	for (const Instruction &inst : reverse(block)) {
		auto found = number.find(&inst);
		if (found != number.end())
			live.reset(found->second);
		if (!isa<PHINode>(inst) && !isa<DbgInfoIntrinsic>(inst))
			for (const Value *operand : inst.operands())
				use(live, operand);
		if (widest && live.count() > widest->count())
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

// What the verifier judges: addresses, what helpers are given, and all that those are made of.
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

static bool isData(Instruction *inst, const SmallPtrSet<Value *, 32> &judged)
{
	auto *call = dyn_cast<CallBase>(inst);

	return inst->getType()->isIntegerTy() && inst->getType()->getIntegerBitWidth() <= 64 && !judged.count(inst) &&
	       !(call && call->isInlineAsm());
}

// Takes what costs least of what is live at once, until the rest fits.
static SmallVector<AllocaInst *, 32> demote(Function &function, LoopInfo &loops, uint64_t words)
{
	SmallVector<AllocaInst *, 32> slots;
	SmallPtrSet<Value *, 32> keep = judged(function);

	for (;;) {
		SmallVector<Instruction *, 64> live = Liveness(function).peak();
		SmallVector<std::pair<uint64_t, unsigned>, 64> data; // by cost
		for (auto [i, inst] : enumerate(live))
			if (isData(inst, keep))
				data.push_back({ costOf(*inst, loops), i });
		if (live.size() <= words || data.empty())
			return slots;
		sort(data);
		data.truncate(std::min<size_t>(data.size(), live.size() - words));
		for (auto [cost, i] : data) {
			Instruction *inst = live[i];
			auto *phi = dyn_cast<PHINode>(inst);
			AllocaInst *slot = phi ? DemotePHIToStack(phi) : DemoteRegToStack(*inst);
			if (!slot)
				continue;
			for (User *user : slot->users()) // what was read back just before its use stays there
				if (isa<LoadInst>(user))
					keep.insert(user);
			slots.push_back(slot);
		}
	}
}

// Where the running CPU's words begin.
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
	map->setSection((".bss..words_" + function.getName()).str()); // it ends with the parts, so there is one of each
	map->setAlignment(Align(64));
	growByParts(*map, size);

	return at.CreatePtrAdd(map, runningPart(at, size));
}

static void moveOut(Function &function, ArrayRef<AllocaInst *> slots)
{
	Value *base = makeBase(function, slots.size());

	for (auto [i, slot] : enumerate(slots)) {
		for (Use &use : make_early_inc_range(slot->uses())) {
			IRBuilder<> at(cast<Instruction>(use.getUser()));
			use.set(at.CreatePtrAdd(base, at.getInt64(8 * i)));
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
	passes.addPass(PressurePass());
}
