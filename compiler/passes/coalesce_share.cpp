// SPDX-License-Identifier: Apache-2.0
// Sharing: a function that several members call, and that is larger than a call, stays a function. All others are inlined, also those
// that get a pointer into the stack: the verifier would follow it, but later passes take such a function for ordinary C. Functions that
// call each other stay as they are: inlined into each other, they would grow with each level, and a later pass makes one function of them
// (recursion.cpp).
#include "coalesce.h"
#include "program.h"

#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace
{

constexpr unsigned maxArguments = 5; // registers that BPF has for them

// Instructions, with those of callees. A call saves registers and sets its arguments. This costs some ns of each request, too much for
// small functions such as the copying of a short reply.
constexpr unsigned minSize = 120;

class Sharing
{
      public:
	void run(Module &, bool share);

      private:
	void findStack(Module &);
	void findRecursive(Module &);
	bool isOfStack(Value *) const;
	bool getsStack(Function &) const;
	bool isWorthwhile(Function &);
	unsigned sizeOf(Function &);
	unsigned copiesOf(Function &);

	SmallPtrSet<Value *, 32> stack; // arguments that may point into a stack
	SmallPtrSet<Function *, 8> recursive; // functions that call themselves, or each other
	DenseMap<Function *, unsigned> sizes, copies;
};

} // namespace

bool Sharing::isOfStack(Value *value) const
{
	value = value->stripInBoundsOffsets();
	return isa<AllocaInst>(value) || stack.contains(value);
}

void Sharing::findStack(Module &module)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (Function &function : module)
			for (Instruction &inst : instructions(function)) {
				auto *call = dyn_cast<CallInst>(&inst);
				Function *callee = call ? call->getCalledFunction() : nullptr;
				if (!callee || callee->isDeclaration())
					continue;
				for (auto [value, argument] : zip(call->args(), callee->args()))
					if (isOfStack(value))
						changed |= stack.insert(&argument).second;
			}
	}
}

void Sharing::findRecursive(Module &module)
{
	CallGraph graph(module);

	for (auto group = scc_begin(&graph); !group.isAtEnd(); ++group)
		if (group.hasCycle())
			for (CallGraphNode *node : *group)
				recursive.insert(node->getFunction());
}

unsigned Sharing::sizeOf(Function &function)
{
	auto [at, isNew] = sizes.insert({ &function, 0 }); // recursion counts once
	unsigned size = 0;

	if (!isNew)
		return at->second;
	for (Instruction &inst : instructions(function)) {
		auto *call = dyn_cast<CallInst>(&inst);
		Function *callee = call ? call->getCalledFunction() : nullptr;
		if (callee && !callee->isDeclaration())
			size += sizeOf(*callee);
		else if (!isa<DbgInfoIntrinsic>(inst) && !isa<LifetimeIntrinsic>(inst))
			size++;
	}
	return sizes[&function] = size;
}

// How many copies there would be if all callers were inlined. Several calls in one function count once.
unsigned Sharing::copiesOf(Function &function)
{
	auto [at, isNew] = copies.insert({ &function, 1 });
	SmallPtrSet<Function *, 4> callers;
	unsigned sum = 0;

	if (!isNew)
		return at->second;
	for (User *user : function.users())
		if (auto *call = dyn_cast<CallBase>(user); call && callers.insert(call->getFunction()).second)
			sum += lambda::isProgram(*call->getFunction()) ? 1 : copiesOf(*call->getFunction());
	return copies[&function] = sum;
}

// Whether a function would be there several times, is larger than a call, and takes its arguments in registers.
bool Sharing::isWorthwhile(Function &function)
{
	return copiesOf(function) > 1 && function.hasLocalLinkage() && function.arg_size() <= maxArguments &&
	       !getsStack(function) && sizeOf(function) >= minSize;
}

bool Sharing::getsStack(Function &function) const
{
	return any_of(function.args(), [&](Argument &argument) { return stack.contains(&argument); });
}

void Sharing::run(Module &module, bool share)
{
	findStack(module);
	findRecursive(module);
	for (Function &function : module) {
		if (function.isDeclaration() || lambda::isProgram(function) ||
		    function.hasFnAttribute(Attribute::NoInline))
			continue;
		if (share && isWorthwhile(function)) {
			function.removeFnAttr(Attribute::AlwaysInline);
			function.addFnAttr(Attribute::NoInline);
		} else if (recursive.contains(&function)) {
			function.removeFnAttr(Attribute::AlwaysInline); // which it has where it was visible to others
		} else if (function.hasOneUse() || getsStack(function)) {
			function.addFnAttr(Attribute::AlwaysInline);
		}
	}
}

// Puts empty assembly behind each call of a member, different for each. Otherwise LLVM would merge accesses to variables of two members into
// one, and later passes could not tell which variable it accesses.
static void separate(Function &program)
{
	LLVMContext &context = program.getContext();
	auto *type = FunctionType::get(Type::getVoidTy(context), { Type::getInt32Ty(context) }, false);
	auto *nothing = InlineAsm::get(type, "", "i", /*hasSideEffects=*/true);
	unsigned number = 0;

	for (Instruction &inst : make_early_inc_range(instructions(program))) {
		auto *call = dyn_cast<CallInst>(&inst);
		if (!call || !call->getCalledFunction() || call->getCalledFunction()->isDeclaration())
			continue;
		IRBuilder<> at(call->getNextNode());
		at.CreateCall(nothing, { at.getInt32(number++) });
	}
}

PreservedAnalyses lambda::SharePass::run(Module &module, ModuleAnalysisManager &)
{
	for (Function &function : module)
		if (isProgram(function))
			separate(function);
	Sharing().run(module, share);
	return PreservedAnalyses::none();
}
