// SPDX-License-Identifier: Apache-2.0
#include "loops.h"
#include "diagnose.h"

#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Utils/LCSSA.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;
using namespace lambda;

// The verifier gives up after a million instructions (BPF_COMPLEXITY_LIMIT_INSNS in include/linux/bpf.h). It may walk paths that fork and
// join within an iteration separately from then on, so a loop with such paths has to be short.
static const uint64_t walkMax = 40000;
static const uint64_t branchyTripMax = 16;

// The verifier may also walk a loop once for each path that forks before it. The unit is instructions walked in loops, times the
// program's branches. Random programs (test/randomc) whose end the verifier did not find had 78,000 and more.
static const uint64_t pathsMax = 1 << 16;

// Whether a loop contains a branch with several targets in it.
static bool isBranchy(const Loop &loop)
{
	for (BasicBlock *block : loop.blocks()) {
		unsigned inside = 0;
		for (BasicBlock *next : successors(block))
			inside += loop.contains(next);
		if (inside > 1)
			return true;
	}
	return false;
}

// How many instructions the verifier walks in a loop at most, 0 if unknown.
static uint64_t walkOf(Loop &loop, LoopInfo &loops, ScalarEvolution &evolution)
{
	uint64_t trips = evolution.getSmallConstantMaxTripCount(&loop), body = 0;

	if (!trips || (trips > branchyTripMax && loop.isInnermost() && isBranchy(loop)))
		return 0;
	for (BasicBlock *block : loop.blocks())
		if (loops.getLoopFor(block) == &loop)
			body += block->size();
	for (Loop *inner : loop) {
		uint64_t walk = walkOf(*inner, loops, evolution);
		if (!walk)
			return 0;
		body += walk;
	}
	return std::max<uint64_t>(1, trips * body);
}

// Whether a loop touches only constants and the kernel's memory: the packet, and values of maps. Such a loop is written for the verifier, which has to find its end.
static bool isPayloadLoop(const Loop &loop, const Provenance &provenance)
{
	bool touchesPacket = false;

	for (BasicBlock *block : loop.blocks()) {
		for (Instruction &inst : *block) {
			auto *pointer = const_cast<Value *>(getLoadStorePointerOperand(&inst));
			if (!pointer)
				continue;
			Place place = provenance.of(pointer);
			auto *global = dyn_cast_or_null<GlobalVariable>(place.variable);
			if (place.kind == Place::Linear ||
			    (place.kind == Place::Variable && !(global && global->isConstant())))
				return false;
			touchesPacket |= place.kind == Place::Native;
		}
	}
	return touchesPacket;
}

// Whether a condition, or an operand of it, depends on a loop's iteration count.
static bool dependsOnCount(Value *condition, const Loop &loop, ScalarEvolution &evolution, unsigned depth = 0)
{
	auto *inst = dyn_cast<Instruction>(condition);

	if (!inst || !loop.contains(inst) || depth > 4)
		return false;
	return any_of(inst->operands(), [&](Value *operand) {
		if (operand->getType()->isIntegerTy(1))
			return dependsOnCount(operand, loop, evolution, depth + 1);
		return isa<ICmpInst>(inst) && evolution.isSCEVable(operand->getType()) &&
		       SCEVExprContains(evolution.getSCEV(operand),
					[](const SCEV *part) { return isa<SCEVAddRecExpr>(part); });
	});
}

// Whether the verifier can see that the loop counts its iterations.
static bool isCounted(const Loop &loop, ScalarEvolution &evolution)
{
	SmallVector<BasicBlock *, 8> exiting;

	loop.getExitingBlocks(exiting);
	return any_of(exiting, [&](BasicBlock *block) {
		auto *branch = dyn_cast<BranchInst>(block->getTerminator());
		return branch && branch->isConditional() && dependsOnCount(branch->getCondition(), loop, evolution);
	});
}

// What the verifier walks in all loops that are not written for it; nothing if unknown.
static std::optional<uint64_t> walkOf(LoopInfo &loops, ScalarEvolution &evolution, const Provenance &provenance)
{
	uint64_t total = 0;

	for (Loop *loop : loops) {
		bool forVerifier = isPayloadLoop(*loop, provenance) && isCounted(*loop, evolution);
		if (forVerifier || isOfSdk(loop->getStartLoc()))
			continue;
		uint64_t walk = walkOf(*loop, loops, evolution);
		if (!walk)
			return std::nullopt;
		total += walk;
	}
	return total;
}

bool lambda::isWalkable(LoopInfo &loops, ScalarEvolution &evolution, const Provenance &provenance)
{
	return walkOf(loops, evolution, provenance).value_or(UINT64_MAX) <= walkMax;
}

bool lambda::isWalkableOnAllPaths(Function &function, LoopInfo &loops, ScalarEvolution &evolution,
				  const Provenance &provenance)
{
	uint64_t walk = walkOf(loops, evolution, provenance).value_or(UINT64_MAX), branches = 0;

	for (BasicBlock &block : function)
		if (unsigned targets = succ_size(&block))
			branches += targets - 1;
	return walk <= walkMax && walk * (1 + branches) <= pathsMax;
}

// How often to unroll a loop. A charge costs about ten machine instructions. If the number of iterations is not a multiple, a second
// loop for the rest would cost more registers than there are.
static unsigned repeatsOf(Loop &loop, ScalarEvolution &evolution)
{
	unsigned trips = evolution.getSmallConstantTripCount(&loop);

	if (loop.getNumBlocks() != 1 || !trips || trips % 8)
		return 1;
	unsigned size = 0;
	for (const Instruction &inst : *loop.getHeader())
		size += !isa<DbgInfoIntrinsic>(inst) && !isa<PHINode>(inst);
	return size <= 24 ? 8 : size <= 48 ? 4 : 1;
}

void lambda::unrollShort(Function &function, FunctionAnalysisManager &analyses)
{
	FunctionPassManager passes;
	auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
	bool any = false;

	for (Loop *loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder()) {
		unsigned repeats = repeatsOf(*loop, evolution);
		if (repeats > 1)
			addStringMetadataToLoop(loop, "llvm.loop.unroll.count", repeats);
		any |= repeats > 1;
	}
	if (!any)
		return;
	passes.addPass(LoopSimplifyPass());
	passes.addPass(LCSSAPass());
	passes.addPass(LoopUnrollPass(LoopUnrollOptions(2, /*OnlyWhenForced=*/true)));
	passes.addPass(InstCombinePass());
	passes.run(function, analyses);
}
