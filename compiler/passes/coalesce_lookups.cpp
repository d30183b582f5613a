// SPDX-License-Identifier: Apache-2.0
// Stratification of what the members have per request: a map of one element is looked up once, where all its uses
// come from, and not at each of them. The kernel gives the same address each time, as a program does not change its CPU.
#include "coalesce.h"

#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

// bpf_map_lookup_elem in include/uapi/linux/bpf.h.
static constexpr uint64_t lookupHelper = 1;

// The map that a call looks up, where it is one that all members share; these have one element.
static GlobalVariable *mapOf(const CallInst &call)
{
	Value *callee = call.getCalledOperand();
	if (auto *cast = dyn_cast<ConstantExpr>(callee); cast && cast->getOpcode() == Instruction::IntToPtr)
		callee = cast->getOperand(0);
	auto *helper = dyn_cast<ConstantInt>(callee);
	if (!helper || helper->getZExtValue() != lookupHelper || call.arg_size() != 2)
		return nullptr;
	auto *map = dyn_cast<GlobalVariable>(call.getArgOperand(0));
	return map && (map->getName() == "lambda_workspaces" || map->getName() == "ln_requests") ? map : nullptr;
}

// Looks the map up in the block that dominates all calls, which then take what was found there. The key is a stack slot of its
// own: at each call its element is the same.
static void hoist(Function &function, DominatorTree &tree, GlobalVariable &map, ArrayRef<CallInst *> calls)
{
	BasicBlock *block = calls[0]->getParent();
	for (CallInst *call : calls)
		block = tree.findNearestCommonDominator(block, call->getParent());
	Instruction *before = block->getTerminator();
	for (CallInst *call : calls)
		if (call->getParent() == block && (before->isTerminator() || call->comesBefore(before)))
			before = call;

	IRBuilder<> entry(&*function.getEntryBlock().getFirstInsertionPt());
	AllocaInst *key = entry.CreateAlloca(entry.getInt32Ty());
	IRBuilder<> at(before);
	at.SetCurrentDebugLocation(calls[0]->getDebugLoc());
	at.CreateStore(at.getInt32(0), key);
	CallInst *first = at.CreateCall(calls[0]->getFunctionType(), calls[0]->getCalledOperand(), { &map, key });
	for (CallInst *call : calls) {
		call->replaceAllUsesWith(first);
		call->eraseFromParent();
	}
}

PreservedAnalyses lambda::LookupsPass::run(Module &module, ModuleAnalysisManager &manager)
{
	NamedMDNode *mark = module.getNamedMetadata(stratifyName);
	if (!mark)
		return PreservedAnalyses::all();
	mark->eraseFromParent();
	for (Function &function : module) {
		MapVector<GlobalVariable *, SmallVector<CallInst *>> lookups;
		for (Instruction &inst : instructions(function))
			if (auto *call = dyn_cast<CallInst>(&inst))
				if (GlobalVariable *map = mapOf(*call))
					lookups[map].push_back(call);
		for (auto &[map, calls] : lookups) {
			if (calls.size() < 2)
				continue;
			DominatorTree tree(function);
			hoist(function, tree, *map, calls);
		}
	}
	// The second test for NULL of what was found once is in vain.
	FunctionPassManager clean;
	clean.addPass(EarlyCSEPass(true));
	clean.addPass(GVNPass());
	clean.addPass(SimplifyCFGPass());
	createModuleToFunctionPassAdaptor(std::move(clean)).run(module, manager);
	return PreservedAnalyses::none();
}
