// SPDX-License-Identifier: Apache-2.0
// Atomics: `counter++` on a variable that several CPUs share is a load, an addition and a store, between which another CPU's addition is
// lost. An author means one expression as one operation, so it becomes one. This runs before LLVM's own passes, which would keep such
// variables in registers over loops. BPF has atomic operations on 32 and 64 bits (BPF_ATOMIC, RFC 9669, section 5.3). The host's shared
// library is compiled the same way, so that both count the same.
#include "atomics.h"
#include "passes.h"
#include "remarks.h"
#include "sharing.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LowerAtomic.h"

using namespace llvm;
using namespace lambda;

bool lambda::dependsOn(Value *value, function_ref<bool(Instruction &)> isRead)
{
	SmallVector<Value *, 8> todo{ value };
	SmallPtrSet<Value *, 16> seen;

	while (!todo.empty()) {
		auto *inst = dyn_cast<Instruction>(todo.pop_back_val());
		if (!inst || !seen.insert(inst).second)
			continue;
		if (isRead(*inst))
			return true;
		append_range(todo, inst->operands());
	}
	return false;
}

// Whether a value is computed from the memory that a store writes to.
static bool readsTarget(Value *value, StoreInst &store)
{
	return dependsOn(value, [&](Instruction &inst) {
		auto *load = dyn_cast<LoadInst>(&inst);
		return load && isSameAddress(load->getPointerOperand(), store.getPointerOperand());
	});
}

static AtomicRMWInst::BinOp atomicOf(const BinaryOperator &operation)
{
	switch (operation.getOpcode()) {
	case Instruction::Add:
		return AtomicRMWInst::Add;
	case Instruction::Sub:
		return AtomicRMWInst::Sub;
	case Instruction::And:
		return AtomicRMWInst::And;
	case Instruction::Or:
		return AtomicRMWInst::Or;
	case Instruction::Xor:
		return AtomicRMWInst::Xor;
	default:
		return AtomicRMWInst::BAD_BINOP;
	}
}

Update::Update(StoreInst &store) : store(store), why(findWhyNot())
{
}

// Looks for `variable op value`. C may have widened both for the operation, but the low bits of the result are those of a narrow one.
bool Update::findOperation()
{
	Value *result = store.getValueOperand();

	if (auto *narrow = dyn_cast<TruncInst>(result)) {
		chain.push_back(narrow);
		result = narrow->getOperand(0);
	}
	operation = dyn_cast<BinaryOperator>(result);
	if (!operation || atomicOf(*operation) == AtomicRMWInst::BAD_BINOP)
		return false;
	chain.push_back(operation);
	for (unsigned side = 0; side < (operation->isCommutative() ? 2 : 1); side++) {
		Value *read = operation->getOperand(side);
		auto *wide = chain.size() > 1 && isa<ZExtInst, SExtInst>(read) ? cast<Instruction>(read) : nullptr;
		load = dyn_cast<LoadInst>(wide ? wide->getOperand(0) : read);
		if (!load || load->getType() != store.getValueOperand()->getType() ||
		    !isSameAddress(load->getPointerOperand(), store.getPointerOperand()))
			continue;
		if (wide)
			chain.push_back(wide);
		by = operation->getOperand(1 - side);
		return true;
	}
	return false;
}

bool Update::isOnlyUsedBehind() const
{
	auto isBehind = [&](const User *user) {
		auto *inst = cast<Instruction>(user);
		return inst == &store || is_contained(chain, inst) || inst->getParent() != store.getParent() ||
		       store.comesBefore(inst);
	};
	return all_of(load->users(), isBehind) &&
	       all_of(chain, [&](Instruction *inst) { return all_of(inst->users(), isBehind); });
}

StringRef Update::findWhyNot()
{
	Type *type = store.getValueOperand()->getType();

	if (!type->isIntegerTy())
		return "it is not an integer";
	if (!findOperation())
		return "it is not one addition, subtraction, and, or, exclusive or";
	if (readsTarget(by, store))
		return "the other operand depends on its old value";
	if (type->getIntegerBitWidth() != 32 && type->getIntegerBitWidth() != 64)
		return "atomic operations are on 32 or 64 bits: use uint32_t or uint64_t";
	if (load->getAlign() < type->getIntegerBitWidth() / 8 || store.getAlign() < type->getIntegerBitWidth() / 8)
		return "it is not aligned: take it out of the packed struct";
	if (load->isAtomic() || store.isAtomic() || load->getParent() != store.getParent() || !isOnlyUsedBehind())
		return "it is read before the rest of the expression: use an operator like +=";
	for (Instruction *inst = load; inst != &store; inst = inst->getNextNode())
		if (inst != load && inst->mayWriteToMemory() && !inst->isLifetimeStartOrEnd())
			return "something is written while it is computed: use an operator like +=";
	return "";
}

void Update::makeAtomic()
{
	IRBuilder<> at(&store);
	auto *rmw = at.CreateAtomicRMW(atomicOf(*operation), store.getPointerOperand(),
				       at.CreateTrunc(by, load->getType()), store.getAlign(),
				       AtomicOrdering::Monotonic); // counting orders no other accesses

	rmw->setVolatile(store.isVolatile());
	rmw->setDebugLoc(operation->getDebugLoc());
	for (Instruction *inst : reverse(chain))
		inst->moveBefore(&store);
	load->replaceAllUsesWith(rmw);
	load->eraseFromParent();
	store.eraseFromParent();
	for (Instruction *inst : chain)
		if (isInstructionTriviallyDead(inst))
			inst->eraseFromParent();
}

namespace
{

struct Atomics : PassInfoMixin<Atomics> {
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);
};

// A function that is given both shared and local variables is atomic on both until it is inlined into its callers.
struct LocalAtomics : PassInfoMixin<LocalAtomics> {
	PreservedAnalyses run(Function &, FunctionAnalysisManager &);
};

} // namespace

PreservedAnalyses Atomics::run(Module &module, ModuleAnalysisManager &)
{
	bool changed = false;

	for (Function &function : module) {
		for (Instruction &inst : make_early_inc_range(instructions(function))) {
			auto *store = dyn_cast<StoreInst>(&inst);
			if (!store || !readsTarget(store->getValueOperand(), *store))
				continue;
			auto variables = sharedVariables(store->getPointerOperand());
			if (variables.empty())
				continue;
			Update update(*store);
			Remark remark(module, "atomic");
			remark.with("object", variables[0]->getName()).at(store->getDebugLoc());
			remark.with("state", update.whyNot().empty() ? "atomic" : "left").with("why", update.whyNot());
			if (!update.whyNot().empty())
				continue;
			update.makeAtomic();
			changed = true;
		}
	}
	return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

PreservedAnalyses LocalAtomics::run(Function &function, FunctionAnalysisManager &)
{
	bool changed = false;

	for (Instruction &inst : make_early_inc_range(instructions(function))) {
		SmallVector<const Value *, 4> variables;
		auto *rmw = dyn_cast<AtomicRMWInst>(&inst);
		if (!rmw)
			continue;
		getUnderlyingObjects(rmw->getPointerOperand(), variables, nullptr, /*MaxLookup=*/0);
		if (all_of(variables, [](const Value *variable) { return isa<AllocaInst>(variable); }))
			changed |= lowerAtomicRMWInst(rmw);
	}
	return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

void lambda::addLocalAtomics(FunctionPassManager &passes)
{
	passes.addPass(LocalAtomics());
}

void lambda::addAtomics(ModulePassManager &passes)
{
	passes.addPass(Atomics());
}
