// SPDX-License-Identifier: Apache-2.0
// Metering: every loop ends within the program's budget. The fuel is a stack slot, filled from a map that the loader writes, and each
// iteration is charged. may_goto makes the verifier accept a loop whose end it does not know; the charge, which the loader finds again
// in the instructions (compiler/check/metering), ends it in time.
#include "memory.h"
#include "passes.h"
#include "program.h"
#include "verdicts.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"

using namespace llvm;
using namespace llvm::PatternMatch;
using namespace lambda;

static const char *const initCode = "r0 = $1 ll\n"
				    "r0 = *(u64 *)(r0 + 0)\n"
				    "*(u64 *)$0 = r0";
static const char *const zeroCode = "$0 = $1 + 8 ll\n"
				    "$0 = *(u64 *)($0 + 0)";
static const char *const chargeCode = "r0 = *(u64 *)$0\n"
				      "r0 += -1\n"
				      "*(u64 *)$0 = r0\n"
				      "if r0 s< 0 goto ${1:l}\n"
				      "may_goto ${1:l}";

namespace
{

class MeteringPass : public PassInfoMixin<MeteringPass>
{
      public:
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);
};

// Meters one program.
class Meter
{
      public:
	Meter(Function &function, LoopInfo &loops) : function(function), loops(loops)
	{
	}

	void run();

      private:
	GlobalVariable *fuel();
	void begin();
	void blur(BasicBlock &header, Instruction *entry);
	void blurJoins(Loop &);
	void blurUses(Instruction &, Instruction *before);
	void blurComparison(ICmpInst &);
	void blurComparisons(Loop &);
	void findPrecise();
	void findKept();
	Value *unknown(Value *, Instruction *before);
	void charge(BasicBlock &header);

	Function &function;
	LoopInfo &loops;
	AllocaInst *slot = nullptr;
	Value *zero = nullptr;
	BasicBlock *fault = nullptr;
	SmallPtrSet<Instruction *, 32> precise, kept;
};

} // namespace

GlobalVariable *Meter::fuel()
{
	Module &module = *function.getParent();
	auto *type = ArrayType::get(Type::getInt64Ty(module.getContext()), 2);

	if (auto *known = module.getNamedGlobal("lambda_fuel"))
		return known;
	auto *map = new GlobalVariable(module, type, false, GlobalValue::InternalLinkage, Constant::getNullValue(type),
				       "lambda_fuel");
	map->setSection(".data.fuel");
	map->setAlignment(Align(8));
	return map;
}

// Fills the slot at the program's very start, and loads the zero that the verifier does not know.
void Meter::begin()
{
	IRBuilder<> at(&*function.getEntryBlock().getFirstInsertionPt());
	Type *number = at.getInt64Ty(), *address = at.getPtrTy();

	slot = at.CreateAlloca(number, nullptr, "fuel");
	auto *init = FunctionType::get(at.getVoidTy(), { address, address }, false);
	CallInst *call = at.CreateCall(init, InlineAsm::get(init, initCode, "=*m,i,~{r0}", true), { slot, fuel() });
	call->addParamAttr(0, Attribute::get(at.getContext(), Attribute::ElementType, number));
	auto *load = FunctionType::get(number, { address }, false);
	zero = at.CreateCall(load, InlineAsm::get(load, zeroCode, "=r,i", true), { fuel() });
	fault = makeFault(function, LN_FAULT_TIME);
}

// Adds the unknown zero, by a separate instruction: the verifier links registers that are copies of each other, and what it learns of one
// it applies to all.
Value *Meter::unknown(Value *value, Instruction *before)
{
	IRBuilder<> at(before);
	bool wide = value->getType()->getIntegerBitWidth() > 32;
	Type *type = wide ? at.getInt64Ty() : at.getInt32Ty();
	auto *add = FunctionType::get(type, { type, type }, false);
	auto *code = InlineAsm::get(add, "$0 += $2", wide ? "=r,0,r" : "=w,0,w", true);
	Value *sum = at.CreateCall(add, code, { at.CreateZExtOrTrunc(value, type), at.CreateZExtOrTrunc(zero, type) });

	return at.CreateZExtOrTrunc(sum, value->getType());
}

// The packet's ends are read from the program's context as numbers, but are addresses to the verifier.
static bool isAddress(const Value &value)
{
	return any_of(value.users(), [](const User *user) {
		return isa<IntToPtrInst>(user) || (isa<ZExtInst>(user) && isAddress(*user));
	});
}

static bool isBlurrable(const Instruction &inst)
{
	return inst.getType()->isIntegerTy() && inst.getType()->getIntegerBitWidth() <= 64 && !isAddress(inst);
}

// Makes the value unknown for its current uses.
void Meter::blurUses(Instruction &inst, Instruction *before)
{
	SmallVector<Use *, 8> uses;

	for (Use &use : inst.uses())
		uses.push_back(&use);
	Value *blurred = unknown(&inst, before);
	for (Use *use : uses)
		use->set(blurred);
}

// The verifier tracks the ranges only of values from which addresses are computed ("precision" in kernel/bpf/verifier.c).
void Meter::findPrecise()
{
	SmallVector<Value *, 64> values;

	for (Instruction &inst : instructions(function)) {
		auto *call = dyn_cast<CallBase>(&inst);
		if (isa<GetElementPtrInst>(inst) || (call && !isa<IntrinsicInst>(call)))
			append_range(values, inst.operands());
	}
	while (!values.empty()) {
		auto *inst = dyn_cast<Instruction>(values.pop_back_val());
		if (inst && inst->getType()->isIntegerTy() && precise.insert(inst).second)
			append_range(values, inst->operands());
	}
}

// Whether a value was made opaque to be compared, on each edge into a loop: LLVM may put the comparison before the loop, and its result has
// to reach the access inside.
static bool isCompared(const PHINode &phi)
{
	return all_of(phi.incoming_values(), [](const Use &value) { return isOpaque(value); });
}

// Values that enter a loop are unknown to the verifier from the first iteration on, so that later iterations show it nothing new. Precise
// values are made unknown in each iteration.
void Meter::blur(BasicBlock &header, Instruction *entry)
{
	BasicBlock *before = entry ? entry->getParent() : nullptr;
	SmallVector<PHINode *, 8> again;

	for (PHINode &phi : header.phis()) {
		if (!isBlurrable(phi) || !before || (kept.count(&phi) && isCompared(phi)))
			continue;
		if (precise.count(&phi)) {
			again.push_back(&phi);
			continue;
		}
		int i = phi.getBasicBlockIndex(before);
		phi.setIncomingValue(i, unknown(phi.getIncomingValue(i), entry));
	}
	for (PHINode *phi : again)
		blurUses(*phi, header.getTerminator());
}

// Whether a select is `a && b` or `a || b`, used only as a branch's condition. If a condition does not have both, the code generator turns
// it into branches (FindMergedConditions() in LLVM's SelectionDAGBuilder.cpp), and no paths join there.
static bool isBranches(const SelectInst &select)
{
	if (!match(&select, m_CombineOr(m_LogicalAnd(), m_LogicalOr())) || !select.hasOneUse())
		return false;
	auto *user = cast<Instruction>(select.user_back());
	auto *outer = dyn_cast<SelectInst>(user);
	return user->getParent() == select.getParent() && (isa<BranchInst>(user) || (outer && isBranches(*outer)));
}

// Where paths join in a loop, a value that depends on the path becomes unknown. Otherwise the verifier would walk each path separately to
// the end of the iteration, and their number would double with every join.
void Meter::blurJoins(Loop &loop)
{
	SmallVector<Instruction *, 32> joins;

	for (BasicBlock *block : loop.blocks())
		for (Instruction &inst : *block) {
			auto *select = dyn_cast<SelectInst>(&inst);
			bool joining = select ? !isBranches(*select) : isa<PHINode>(inst) && !loops.isLoopHeader(block);
			if (joining && isBlurrable(inst))
				joins.push_back(&inst);
		}
	for (Instruction *join : joins) {
		// With these constants, the code generator makes it an arithmetic shift and a mask. The verifier then forks for the two
		// outcomes, without a branch where they could join again (maybe_fork_scalars() in kernel/bpf/verifier.c).
		if (auto *select = dyn_cast<SelectInst>(join))
			for (Use &arm : drop_begin(select->operands()))
				if (auto *constant = dyn_cast<ConstantInt>(arm))
					if (constant->isZero() || constant->isMinusOne())
						arm.set(unknown(constant, select));
		blurUses(*join, isa<PHINode>(join) ? &*join->getParent()->getFirstInsertionPt() : join->getNextNode());
	}
}

// Whether what the verifier learns of a value by a comparison outlives the comparison.
static bool outlives(Value *value)
{
	for (; isa<Instruction>(value) && value->getType()->isIntegerTy();
	     value = cast<Instruction>(value)->getOperand(0)) {
		if (!value->hasOneUse())
			return !isOpaque(value);
		if (!isa<CastInst>(value))
			return false;
	}
	return false;
}

// A comparison after which the paths join again is made on a copy. What the verifier learns by it would keep the paths apart.
void Meter::blurComparison(ICmpInst &compare)
{
	if (kept.count(&compare) || !compare.getOperand(0)->getType()->isIntegerTy())
		return;
	for (Use &operand : compare.operands())
		if (outlives(operand) && isBlurrable(*cast<Instruction>(operand)) &&
		    !kept.count(cast<Instruction>(operand)))
			operand.set(unknown(operand, &compare));
}

void Meter::blurComparisons(Loop &loop)
{
	SmallVector<ICmpInst *, 32> comparisons;

	for (BasicBlock *block : loop.blocks()) {
		auto *branch = dyn_cast<BranchInst>(block->getTerminator());
		Loop *inner = loops.getLoopFor(block);
		bool joins = branch && branch->isConditional() &&
			     all_of(branch->successors(), [&](BasicBlock *next) { return inner->contains(next); });
		for (Instruction &inst : *block)
			if (auto *select = dyn_cast<SelectInst>(&inst))
				if (auto *compare = dyn_cast<ICmpInst>(select->getCondition()))
					comparisons.push_back(compare);
		if (auto *compare = joins ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr)
			comparisons.push_back(compare);
	}
	for (ICmpInst *compare : comparisons)
		if (loop.contains(compare))
			blurComparison(*compare);
}

// The author compares indices into the kernel's memory, and the verifier has to know their ranges.
void Meter::findKept()
{
	SmallVector<Value *, 16> values;

	for (Instruction &inst : instructions(function)) {
		auto *gep = dyn_cast<GetElementPtrInst>(&inst);
		if (gep && !isa<GlobalVariable>(getUnderlyingObject(gep)))
			append_range(values, gep->indices());
	}
	while (!values.empty()) {
		auto *inst = dyn_cast<Instruction>(values.pop_back_val());
		if (!inst || !inst->getType()->isIntegerTy() || !kept.insert(inst).second || isOpaque(inst))
			continue;
		append_range(values, inst->operands());
	}
}

// The cost is set once the BPF instructions are known (compiler/check/metering).
void Meter::charge(BasicBlock &header)
{
	BasicBlock *rest = header.splitBasicBlock(header.getFirstNonPHIOrDbg()->getIterator());
	IRBuilder<> at(&header);

	header.getTerminator()->eraseFromParent();
	at.SetInsertPoint(&header);
	auto *type = FunctionType::get(at.getVoidTy(), { at.getPtrTy() }, false);
	auto *code = InlineAsm::get(type, chargeCode, "=*m,!i,~{r0}", true);
	CallBrInst *call = at.CreateCallBr(type, code, rest, { fault }, { slot });
	call->addParamAttr(0, Attribute::get(at.getContext(), Attribute::ElementType, at.getInt64Ty()));
}

// A value that is undefined on some path is zero there: the verifier refuses to add to an uninitialized register.
static void defineAll(Function &function)
{
	for (Instruction &inst : instructions(function))
		if (isa<PHINode>(inst) || isa<SelectInst>(inst))
			for (Use &operand : inst.operands())
				if (isa<UndefValue>(operand) && operand->getType()->isIntegerTy())
					operand.set(Constant::getNullValue(operand->getType()));
}

void Meter::run()
{
	SmallVector<std::pair<BasicBlock *, Instruction *>, 8> entries;
	SmallVector<Loop *, 4> all = loops.getLoopsInPreorder();

	defineAll(function);
	begin();
	findPrecise();
	findKept();
	for (Loop *loop : loops) {
		blurComparisons(*loop);
		blurJoins(*loop);
	}
	for (Loop *loop : all) { // charging splits blocks without updating the loops
		BasicBlock *before = loop->getLoopPreheader();
		entries.push_back({ loop->getHeader(), before ? before->getTerminator() : nullptr });
	}
	for (auto [header, entry] : entries)
		charge(*header);
	for (auto [header, entry] : entries)
		blur(*header, entry);
}

PreservedAnalyses MeteringPass::run(Module &module, ModuleAnalysisManager &manager)
{
	auto &analyses = manager.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();

	for (Function &function : module) {
		if (!isProgram(function) || !isMetered(module))
			continue;
		FunctionPassManager passes;
		passes.addPass(LoopSimplifyPass());
		passes.run(function, analyses);
		analyses.invalidate(function, PreservedAnalyses::none());
		auto &loops = analyses.getResult<LoopAnalysis>(function);
		if (!loops.empty()) // a lambda or its migration may have none
			Meter(function, loops).run();
	}
	removeMarks(module);
	return PreservedAnalyses::none();
}

void lambda::addMetering(ModulePassManager &passes)
{
	passes.addPass(MeteringPass());
}
