// SPDX-License-Identifier: Apache-2.0
// Coalescing: LLVM's MergeFunctions merges functions that are equal, but not lambdas that differ in a service or a length. Here the
// constants in which they differ become parameters. Callees are merged first, so that a difference deep in the call graph becomes a
// parameter of all callers, and two lambdas become one.
#include "coalesce.h"
#include "program.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Passes/PassBuilder.h"

using namespace llvm;

namespace
{

// Registers that BPF has for arguments.
constexpr unsigned maxArguments = 5;

// Two constants that a parameter replaces.
using Difference = std::pair<Constant *, Constant *>;

// Compares two functions block by block, in their order.
class Comparison
{
      public:
	Comparison(Function &a, Function &b) : a(a), b(b)
	{
	}

	bool run();

	MapVector<Difference, SmallVector<Use *>> differences; // with their uses in a

      private:
	bool same(Instruction &, Instruction &);
	bool same(Use &, Use &);
	bool match(Value *x, Value *y)
	{
		return matched.insert({ x, y }).first->second == y;
	}

	Function &a, &b;
	DenseMap<Value *, Value *> matched;
};

} // namespace

// Whether a parameter may replace a constant operand. Addresses may not vary: later passes have to find the variable of each address, and
// members keep to their own.
static bool mayVary(Use &use)
{
	auto *inst = cast<Instruction>(use.getUser());

	if (!isa<ConstantInt>(use.get()))
		return false;
	if (auto *call = dyn_cast<CallBase>(inst))
		return !call->isCallee(&use) && !call->isInlineAsm() && !isa<IntrinsicInst>(call) &&
		       call->getCalledFunction();
	if (auto *gep = dyn_cast<GetElementPtrInst>(inst))
		return use.getOperandNo() < 2 || !gep->getSourceElementType()->isStructTy();
	return isa<BinaryOperator, CmpInst, StoreInst, LoadInst, PHINode, SelectInst, ReturnInst, CastInst>(inst);
}

bool Comparison::same(Use &x, Use &y)
{
	auto *constant = dyn_cast<Constant>(x.get()), *other = dyn_cast<Constant>(y.get());

	if (isa<InlineAsm>(x.get()) || isa<MetadataAsValue>(x.get()))
		return x.get() == y.get();
	if (!constant || !other)
		return !constant && !other && match(x.get(), y.get());
	if (constant == other || (constant == &a && other == &b))
		return true;
	if (constant->getType() != other->getType() || !mayVary(x) || !mayVary(y))
		return false;
	differences[{ constant, other }].push_back(&x);
	return true;
}

bool Comparison::same(Instruction &x, Instruction &y)
{
	if (!x.isSameOperationAs(&y) || !x.hasSameSubclassOptionalData(&y))
		return false;
	if (auto *phi = dyn_cast<PHINode>(&x)) {
		for (unsigned i = 0; i < phi->getNumIncomingValues(); i++)
			if (!match(phi->getIncomingBlock(i), cast<PHINode>(y).getIncomingBlock(i)))
				return false;
	}
	if (auto *gep = dyn_cast<GetElementPtrInst>(&x);
	    gep && gep->getSourceElementType() != cast<GetElementPtrInst>(y).getSourceElementType())
		return false;
	for (unsigned i = 0; i < x.getNumOperands(); i++)
		if (!same(x.getOperandUse(i), y.getOperandUse(i)))
			return false;
	return match(&x, &y);
}

bool Comparison::run()
{
	if (a.getFunctionType() != b.getFunctionType() || a.size() != b.size() || a.isVarArg() ||
	    a.getInstructionCount() != b.getInstructionCount())
		return false;
	for (unsigned i = 0; i < a.arg_size(); i++)
		matched[a.getArg(i)] = b.getArg(i);
	for (auto [x, y] : zip(a, b)) {
		if (!match(&x, &y) || x.size() != y.size())
			return false;
		for (auto [xi, yi] : zip(x, y))
			if (!same(xi, yi))
				return false;
	}
	return true;
}

static bool isCalledOnly(Function &function)
{
	return all_of(function.uses(), [](const Use &use) {
		auto *call = dyn_cast<CallInst>(use.getUser());
		return call && call->isCallee(&use);
	});
}

static bool mayMerge(Function &function)
{
	return !function.isDeclaration() && function.hasLocalLinkage() && isCalledOnly(function);
}

// Calls of the function become calls of the merged one.
static void redirect(Function &from, Function &to, ArrayRef<Constant *> extra)
{
	for (User *user : make_early_inc_range(from.users())) {
		auto *call = cast<CallInst>(user);
		SmallVector<Value *> arguments(call->args());
		append_range(arguments, extra);
		auto *now = CallInst::Create(&to, arguments, "", call->getIterator());
		now->takeName(call);
		now->setCallingConv(to.getCallingConv());
		now->setTailCallKind(call->getTailCallKind());
		now->setDebugLoc(call->getDebugLoc());
		call->replaceAllUsesWith(now);
		call->eraseFromParent();
	}
}

// Merges both functions into one, and returns it.
static Function *merge(Function &a, Function &b, Comparison &comparison)
{
	SmallVector<Type *> types(a.getFunctionType()->params());
	SmallVector<Constant *> ofA, ofB;
	for (auto &[difference, uses] : comparison.differences) {
		types.push_back(difference.first->getType());
		ofA.push_back(difference.first);
		ofB.push_back(difference.second);
	}
	Function *both = Function::Create(FunctionType::get(a.getReturnType(), types, false), a.getLinkage());
	a.getParent()->getFunctionList().insert(a.getIterator(), both);
	both->copyAttributesFrom(&a);
	both->setSubprogram(a.getSubprogram());
	a.setSubprogram(nullptr);
	both->splice(both->begin(), &a);
	for (auto [old, now] : zip(a.args(), both->args())) {
		now.takeName(&old);
		old.replaceAllUsesWith(&now);
	}
	unsigned next = a.arg_size();
	for (auto &[difference, uses] : comparison.differences) {
		for (Use *use : uses)
			use->set(both->getArg(next));
		next++;
	}
	b.deleteBody();
	redirect(a, *both, ofA);
	redirect(b, *both, ofB);
	both->takeName(&a);
	a.eraseFromParent();
	b.eraseFromParent();
	return both;
}

// The functions of a module, callees before their callers.
static std::vector<Function *> bottomUp(Module &module)
{
	std::vector<Function *> order;
	CallGraph graph(module);

	for (CallGraphNode *node : post_order(&graph))
		if (Function *function = node->getFunction(); function && mayMerge(*function))
			order.push_back(function);
	return order;
}

// Merges the first pair of functions that can be merged, and says whether there was one.
static bool mergeOne(Module &module)
{
	std::vector<Function *> functions = bottomUp(module);

	for (auto a = functions.begin(); a != functions.end(); ++a) {
		for (auto b = std::next(a); b != functions.end(); ++b) {
			Comparison comparison(**a, **b);
			if (!comparison.run() || (*a)->arg_size() + comparison.differences.size() > maxArguments)
				continue;
			merge(**a, **b, comparison);
			return true;
		}
	}
	return false;
}

// Whether a call is all there is in a block that branches unconditionally.
static bool isLast(const CallInst &call)
{
	auto *branch = dyn_cast_or_null<BranchInst>(call.getNextNonDebugInstruction());
	return branch && branch->isUnconditional();
}

// Merges several calls in a function that differ in their arguments and continue at one place.
static void join(ArrayRef<CallInst *> calls)
{
	BasicBlock *rest = calls[0]->getParent()->getSingleSuccessor();
	Function *function = rest->getParent();
	auto *block = BasicBlock::Create(rest->getContext(), "member", function, rest);
	auto *call = cast<CallInst>(calls[0]->clone());

	for (unsigned i = 0; i < call->arg_size(); i++) {
		auto *phi = PHINode::Create(call->getArgOperand(i)->getType(), calls.size(), "", block);
		for (CallInst *one : calls)
			phi->addIncoming(one->getArgOperand(i), one->getParent());
		Value *same = phi->hasConstantValue();
		call->setArgOperand(i, same ? same : phi);
		if (same)
			phi->eraseFromParent();
	}
	call->insertInto(block, block->end());
	BranchInst::Create(rest, block);
	for (PHINode &phi : rest->phis())
		phi.addIncoming(call, block);
	for (CallInst *one : calls) {
		for (PHINode &phi : rest->phis())
			phi.removeIncomingValue(one->getParent(), false);
		one->getParent()->getTerminator()->setSuccessor(0, block);
		one->eraseFromParent();
	}
}

// Joins the program's calls of members that were merged.
static void joinCalls(Module &module)
{
	MapVector<std::pair<Function *, BasicBlock *>, SmallVector<CallInst *>> calls;

	for (Function &function : module) {
		if (!lambda::isProgram(function))
			continue;
		for (Instruction &inst : instructions(function)) {
			auto *call = dyn_cast<CallInst>(&inst);
			if (!call || !call->getCalledFunction() || call->getCalledFunction()->isDeclaration() ||
			    !isLast(*call))
				continue;
			BasicBlock *rest = call->getParent()->getSingleSuccessor();
			if (all_of(rest->phis(), [&](PHINode &phi) {
				    return phi.getIncomingValueForBlock(call->getParent()) == call;
			    }))
				calls[{ call->getCalledFunction(), rest }].push_back(call);
		}
	}
	for (auto &[place, list] : calls)
		if (list.size() > 1)
			join(list);
}

PreservedAnalyses lambda::CoalescePass::run(Module &module, ModuleAnalysisManager &)
{
	while (mergeOne(module))
		;
	joinCalls(module);
	return PreservedAnalyses::none();
}

// The passes by their names for `opt -passes=`, and what runs in every compilation.
void lambda::addCoalescing(PassBuilder &builder)
{
	builder.registerPipelineParsingCallback(
		[](StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
			if (name.consume_front("lambda-member<") && name.consume_back(">"))
				passes.addPass(MemberPass(name));
			else if (name == "lambda-fuse" || name == "lambda-fuse<stratify>")
				passes.addPass(FusePass(name.ends_with(">")));
			else if (name == "lambda-coalesce")
				passes.addPass(CoalescePass());
			else if (name == "lambda-share" || name == "lambda-copy")
				passes.addPass(SharePass(name == "lambda-share"));
			else
				return false;
			return true;
		});
	builder.registerOptimizerEarlyEPCallback(
		[](ModulePassManager &passes, OptimizationLevel) { passes.addPass(LookupsPass()); });
}
