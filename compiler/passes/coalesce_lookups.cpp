// SPDX-License-Identifier: Apache-2.0
// Stratification of what the members have per request: a map of one element is looked up once on each path instead of at each use. The
// kernel gives the same address each time, as a program does not change its CPU.
#include "coalesce.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

// bpf_map_lookup_elem in include/uapi/linux/bpf.h.
static constexpr uint64_t lookupHelper = 1;

// The map that a call looks up, if all members share it. These maps have one element.
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

// A call takes the result of a lookup that dominates it. No lookup is hoisted: a request does not pay for what it does not use.
static bool unite(DominatorTree &tree, ArrayRef<CallInst *> calls)
{
	SmallVector<CallInst *> first;

	for (CallInst *call : calls) {
		auto found = find_if(first, [&](CallInst *before) { return tree.dominates(before, call); });
		if (found == first.end()) {
			first.push_back(call);
			continue;
		}
		call->replaceAllUsesWith(*found);
		call->eraseFromParent();
	}
	return first.size() < calls.size();
}

PreservedAnalyses lambda::LookupsPass::run(Module &module, ModuleAnalysisManager &manager)
{
	NamedMDNode *mark = module.getNamedMetadata(stratifyName);
	if (!mark)
		return PreservedAnalyses::all();
	mark->eraseFromParent();
	bool changed = false;
	for (Function &function : module) {
		if (function.isDeclaration())
			continue;
		MapVector<GlobalVariable *, SmallVector<CallInst *>> lookups;
		for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function))
			for (Instruction &inst : *block)
				if (auto *call = dyn_cast<CallInst>(&inst))
					if (GlobalVariable *map = mapOf(*call))
						lookups[map].push_back(call);
		DominatorTree tree(function);
		for (auto &[map, calls] : lookups)
			changed |= unite(tree, calls);
	}
	if (!changed)
		return PreservedAnalyses::all();
	manager.invalidate(module, PreservedAnalyses::none());
	// Removes the repeated NULL tests of one result.
	FunctionPassManager clean;
	clean.addPass(EarlyCSEPass(true));
	clean.addPass(GVNPass());
	clean.addPass(SimplifyCFGPass());
	createModuleToFunctionPassAdaptor(std::move(clean)).run(module, manager);
	return PreservedAnalyses::none();
}
