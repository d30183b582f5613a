// SPDX-License-Identifier: Apache-2.0
// LAMBDA_ATOMIC (sdk/lambda.h): an author asks that no update of a variable is lost. Once LLVM has local variables in registers, an update
// is recognised even over several statements. One that is not an atomic operation when all is inlined is refused at its line. In
// between, all other accesses of the variable are volatile, so that LLVM leaves them where they are.
#include "atomics.h"
#include "diagnose.h"
#include "passes.h"
#include "remarks.h"
#include "sharing.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

using namespace llvm;
using namespace lambda;

static bool isMark(const Value *text)
{
	auto *global = dyn_cast<GlobalVariable>(text->stripPointerCasts());
	auto *string = global && global->hasInitializer() ? dyn_cast<ConstantDataArray>(global->getInitializer())
							  : nullptr;

	return string && string->isCString() && string->getAsCString() == "lambda.atomic";
}

// The array that clang's annotate attribute makes: { variable, text, file, line, arguments }.
static GlobalVariable *annotations(Module &module)
{
	GlobalVariable *list = module.getNamedGlobal("llvm.global.annotations");

	return list && list->hasAppendingLinkage() ? list : nullptr;
}

namespace
{

// The marked variables.
class Marks
{
      public:
	explicit Marks(Module &);

	bool empty() const
	{
		return variables.empty();
	}

	// The marked variable that a pointer may point into, or NULL.
	GlobalVariable *of(Value *pointer) const;

	// The marked variable that a store updates depending on its old value, or NULL.
	GlobalVariable *changedBy(StoreInst &) const;

	SmallSetVector<GlobalVariable *, 4> variables;
};

struct MarkedAtomics : PassInfoMixin<MarkedAtomics> {
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);
};

class CheckMarks : public PassInfoMixin<CheckMarks>
{
      public:
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);

      private:
	void checkAddress(Value &pointer, const GlobalVariable &);

	SmallPtrSet<Value *, 16> seen;
};

} // namespace

Marks::Marks(Module &module)
{
	if (GlobalVariable *list = annotations(module)) {
		for (Use &use : list->getInitializer()->operands()) {
			auto *entry = dyn_cast<ConstantStruct>(use.get());
			auto *global = entry ? dyn_cast<GlobalVariable>(entry->getOperand(0)->stripPointerCasts())
					     : nullptr;
			if (global && isMark(entry->getOperand(1)))
				variables.insert(global);
		}
	}
}

GlobalVariable *Marks::of(Value *pointer) const
{
	for (GlobalVariable *variable : sharedVariables(pointer))
		if (variables.contains(variable))
			return variable;
	return nullptr;
}

GlobalVariable *Marks::changedBy(StoreInst &store) const
{
	GlobalVariable *variable = of(store.getPointerOperand());
	bool isUpdate = variable && dependsOn(store.getValueOperand(), [&](Instruction &inst) {
				auto *rmw = dyn_cast<AtomicRMWInst>(&inst);
				Value *from = rmw ? rmw->getPointerOperand() : getLoadStorePointerOperand(&inst);
				return from && sharedVariables(from).contains(variable);
			});

	return isUpdate ? variable : nullptr;
}

// Variables on the stack, and members, have their annotations in calls.
static void checkAnnotation(CallBase &call)
{
	Intrinsic::ID id = call.getIntrinsicID();

	if (id == Intrinsic::var_annotation && isMark(call.getArgOperand(1)))
		refuse(call, "LAMBDA_ATOMIC on a local object, which nobody else has: leave it out");
	else if (id == Intrinsic::ptr_annotation && isMark(call.getArgOperand(1)))
		refuse(call, "LAMBDA_ATOMIC on a member: mark the object that it is in");
}

static void makeAtomic(StoreInst &store, Update &update, const GlobalVariable &variable)
{
	Remark(*store.getModule(), "atomic")
		.with("object", variable.getName())
		.with("state", "atomic")
		.at(store.getDebugLoc());
	update.makeAtomic();
}

PreservedAnalyses MarkedAtomics::run(Module &module, ModuleAnalysisManager &)
{
	Marks marks(module);

	for (Function &function : module) {
		for (Instruction &inst : make_early_inc_range(instructions(function))) {
			auto *store = dyn_cast<StoreInst>(&inst);
			auto *load = dyn_cast<LoadInst>(&inst);
			if (auto *call = dyn_cast<CallBase>(&inst))
				checkAnnotation(*call);
			if (marks.empty())
				continue;
			if (GlobalVariable *variable = store ? marks.changedBy(*store) : nullptr)
				if (Update update(*store); update.whyNot().empty()) {
					makeAtomic(*store, update, *variable);
					continue;
				}
			if (store && marks.of(store->getPointerOperand()))
				store->setVolatile(true);
			else if (load && marks.of(load->getPointerOperand()))
				load->setVolatile(true);
		}
	}
	return marks.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

// A stored address comes back where no pass can follow it.
void CheckMarks::checkAddress(Value &pointer, const GlobalVariable &variable)
{
	if (!seen.insert(&pointer).second)
		return;
	for (Use &use : pointer.uses()) {
		User *user = use.getUser();
		auto *call = dyn_cast<CallBase>(user);
		auto *store = dyn_cast<StoreInst>(user);
		if (isa<GEPOperator>(user) || isa<PHINode, SelectInst, FreezeInst>(user)) {
			checkAddress(*user, variable);
		} else if (call && call->isArgOperand(&use)) {
			Function *callee = call->getCalledFunction();
			if (callee && !callee->isDeclaration() && use.getOperandNo() < callee->arg_size())
				checkAddress(*callee->getArg(use.getOperandNo()), variable);
		} else if (isa<PtrToIntInst>(user) || (store && store->getValueOperand() == &pointer)) {
			refuse(*cast<Instruction>(user), "the address of " + variable.getName() +
								 ", which is LAMBDA_ATOMIC, is kept: use it by its "
								 "name, or give it to functions only");
		}
	}
}

PreservedAnalyses CheckMarks::run(Module &module, ModuleAnalysisManager &)
{
	Marks marks(module);

	if (GlobalVariable *list = annotations(module))
		list->eraseFromParent(); // no other pass reads it
	if (marks.empty())
		return PreservedAnalyses::all();
	for (Function &function : module) {
		for (Instruction &inst : instructions(function)) {
			auto *store = dyn_cast<StoreInst>(&inst);
			if (GlobalVariable *variable = store ? marks.changedBy(*store) : nullptr)
				refuse(inst, "this change of " + variable->getName() +
						     ", which is LAMBDA_ATOMIC, is not an atomic operation: " +
						     Update(*store).whyNot() +
						     "; __sync_val_compare_and_swap() makes one of any change");
		}
	}
	for (GlobalVariable *variable : marks.variables)
		checkAddress(*variable, *variable);
	return PreservedAnalyses::none();
}

void lambda::addMarkedAtomics(ModulePassManager &passes)
{
	passes.addPass(MarkedAtomics());
}

void lambda::addCheckMarks(ModulePassManager &passes)
{
	passes.addPass(CheckMarks());
}
