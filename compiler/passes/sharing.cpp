// SPDX-License-Identifier: Apache-2.0
#include "sharing.h"
#include "provenance.h"

#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

bool lambda::isShared(const GlobalVariable &global)
{
	static const StringRef ofRequest[] = { ".bss..request", ".bss..messages", ".bss..migrate_old" };

	return global.hasInitializer() && !global.isConstant() && !global.isThreadLocal() && !isNative(global) &&
	       !is_contained(ofRequest, global.getSection());
}

namespace
{

// Follows a pointer to where it comes from.
class Walk
{
      public:
	SmallSetVector<GlobalVariable *, 4> found;

	void follow(Value *pointer);

      private:
	void followArgument(Argument &);
	void followCall(CallBase &);
	void followVariable(AllocaInst &);

	SmallPtrSet<Value *, 16> seen;
};

} // namespace

void Walk::follow(Value *pointer)
{
	if (!pointer->getType()->isPointerTy() || !seen.insert(pointer).second)
		return;
	if (auto *global = dyn_cast<GlobalVariable>(pointer)) {
		if (lambda::isShared(*global))
			found.insert(global);
	} else if (auto *gep = dyn_cast<GEPOperator>(pointer)) {
		follow(gep->getPointerOperand());
	} else if (isa<PHINode, SelectInst, FreezeInst>(pointer)) {
		for (Value *operand : cast<Instruction>(pointer)->operands())
			follow(operand);
	} else if (auto *argument = dyn_cast<Argument>(pointer)) {
		followArgument(*argument);
	} else if (auto *call = dyn_cast<CallBase>(pointer)) {
		followCall(*call);
	} else if (auto *load = dyn_cast<LoadInst>(pointer)) {
		if (auto *variable = dyn_cast<AllocaInst>(load->getPointerOperand()))
			followVariable(*variable);
	}
}

void Walk::followArgument(Argument &argument)
{
	for (User *user : argument.getParent()->users())
		if (auto *call = dyn_cast<CallBase>(user);
		    call && call->getCalledFunction() == argument.getParent() && argument.getArgNo() < call->arg_size())
			follow(call->getArgOperand(argument.getArgNo()));
}

void Walk::followCall(CallBase &call)
{
	if (lambda::isOpaque(&call))
		return follow(call.getArgOperand(0));
	Function *callee = call.getCalledFunction();
	for (BasicBlock &block : callee ? *callee : *call.getFunction())
		if (auto *end = dyn_cast<ReturnInst>(block.getTerminator()); callee && end)
			follow(end->getReturnValue());
}

// A local variable that holds a pointer, before it is in a register.
void Walk::followVariable(AllocaInst &variable)
{
	if (!isAllocaPromotable(&variable))
		return;
	for (User *user : variable.users())
		if (auto *store = dyn_cast<StoreInst>(user))
			follow(store->getValueOperand());
}

SmallSetVector<GlobalVariable *, 4> lambda::sharedVariables(Value *pointer)
{
	Walk walk;

	walk.follow(pointer);
	return walk.found;
}

// Whether nothing writes to memory between two instructions of one block.
static bool isUnwritten(const Instruction *from, const Instruction *to)
{
	if (from->getParent() != to->getParent())
		return false;
	if (to->comesBefore(from))
		std::swap(from, to);
	for (; from != to; from = from->getNextNode())
		if (from->mayWriteToMemory())
			return false;
	return true;
}

bool lambda::isSameAddress(const Value *a, const Value *b)
{
	auto *x = dyn_cast<Instruction>(a), *y = dyn_cast<Instruction>(b);

	if (a == b)
		return true;
	if (!x || !y || !x->isSameOperationAs(y) || !isa<GetElementPtrInst, CastInst, BinaryOperator, LoadInst>(x))
		return false;
	if (isa<LoadInst>(x) && !isUnwritten(x, y))
		return false;
	return all_of(zip(x->operands(), y->operands()),
		      [](auto pair) { return isSameAddress(std::get<0>(pair), std::get<1>(pair)); });
}
