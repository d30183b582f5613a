// SPDX-License-Identifier: Apache-2.0
// Memory: every access is proven in bounds or guarded, and stored pointers become offsets in linear memory. The verifier then sees a
// constant base and an offset that was compared just before, whatever the author's pointers do.
#include "memory.h"
#include "remarks.h"
#include "diagnose.h"
#include "loops.h"
#include "passes.h"
#include "program.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SeparateConstOffsetFromGEP.h"

using namespace llvm;
using namespace lambda;

SmallVector<Access, 2> lambda::accessesOf(Instruction &inst, const Provenance &provenance)
{
	const DataLayout &data = inst.getModule()->getDataLayout();
	SmallVector<Access, 2> list;
	auto add = [&](unsigned operand, uint64_t size) {
		Place place = provenance.of(inst.getOperand(operand));
		auto *local = dyn_cast_or_null<AllocaInst>(place.variable);
		if (place.isNumber() && !(local && staysOnStack(*local)))
			list.push_back({ &inst, operand, size, place, {} });
	};

	if (auto *load = dyn_cast<LoadInst>(&inst))
		add(0, data.getTypeStoreSize(load->getType()));
	else if (auto *store = dyn_cast<StoreInst>(&inst))
		add(1, data.getTypeStoreSize(store->getValueOperand()->getType()));
	else if (auto *rmw = dyn_cast<AtomicRMWInst>(&inst))
		add(0, data.getTypeStoreSize(rmw->getValOperand()->getType()));
	else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&inst))
		add(0, data.getTypeStoreSize(exchange->getNewValOperand()->getType()));
	else if (auto *copy = dyn_cast<MemIntrinsic>(&inst)) {
		uint64_t size = cast<ConstantInt>(copy->getLength())->getZExtValue(); // others were expanded
		add(0, size);
		if (isa<MemTransferInst>(inst))
			add(1, size);
	}
	return list;
}

// The verifier walks loops that are not metered, and so knows their counters.
static ScalarEvolution *evolution(Function &function, FunctionAnalysisManager &analyses)
{
	if (isMetered(*function.getParent()))
		return nullptr;
	return &analyses.getResult<ScalarEvolutionAnalysis>(function);
}

namespace
{

// A call of __lambda_resolve().
struct Resolve {
	CallBase *call;
	Place place;
	Value *number;
};

// Rewrites one function.
class Rewriter
{
      public:
	Rewriter(Function &function, const Provenance &provenance, Layout &layout, FunctionAnalysisManager &analyses)
	    : provenance(provenance), layout(layout), numbers(function, provenance, layout),
	      guards(function, layout, numbers, analyses.getResult<DominatorTreeAnalysis>(function),
		     VerifiedRanges(analyses.getResult<LazyValueAnalysis>(function), evolution(function, analyses))),
	      tree(analyses.getResult<DominatorTreeAnalysis>(function))
	{
	}

	void run();

      private:
	void rewrite(Instruction &);
	void rewriteStore(StoreInst &);
	void rewriteCompare(ICmpInst &);
	void rewriteCall(CallBase &);
	Value *addressOf(Value *pointer, Place, IRBuilder<> &);
	void emit(const Resolve &);
	void beginRequest();

	const Provenance &provenance;
	Layout &layout;
	Numbers numbers;
	Guards guards;
	DominatorTree &tree;
	SmallVector<Instruction *, 16> dead;
	SmallVector<Resolve, 4> resolves;
};

} // namespace

void Rewriter::rewriteStore(StoreInst &store)
{
	Value *value = store.getValueOperand();
	Place place = value->getType()->isPointerTy() ? provenance.of(value) : Place{ Place::Native };
	IRBuilder<> at(&store);

	if (place.isNumber())
		store.setOperand(0, numbers.value(value, { Place::Linear }, at));
}

void Rewriter::rewriteCompare(ICmpInst &compare)
{
	Value *left = compare.getOperand(0), *right = compare.getOperand(1);
	if (!left->getType()->isPointerTy())
		return;
	Place a = provenance.of(left), b = provenance.of(right);
	Place as = a.kind == Place::Null ? b : a;
	IRBuilder<> at(&compare);

	if (!a.isNumber() || !b.isNumber() || !as.isNumber())
		return;
	auto *now = at.CreateICmp(compare.getPredicate(), numbers.value(left, as, at), numbers.value(right, as, at));
	compare.replaceAllUsesWith(now);
	dead.push_back(&compare);
}

// Helpers get real addresses, which the verifier judges.
void Rewriter::rewriteCall(CallBase &call)
{
	IRBuilder<> at(&call);

	if (isResolve(call)) {
		Place place = provenance.of(call.getArgOperand(0));
		if (place.isNumber())
			resolves.push_back({ &call, place, numbers.value(call.getArgOperand(0), place, at) });
		return;
	}
	if (auto *intrinsic = dyn_cast<IntrinsicInst>(&call)) {
		auto *local = intrinsic->isLifetimeStartOrEnd() ? intrinsic->getArgOperand(1) : nullptr;
		if (local && layout.has(local->stripPointerCasts()))
			dead.push_back(&call);
		return;
	}
	if (isOpaque(&call))
		return;
	for (unsigned i = 0; i < call.arg_size(); i++) {
		Value *pointer = call.getArgOperand(i);
		Place place = pointer->getType()->isPointerTy() ? provenance.of(pointer) : Place{ Place::Native };
		if (place.kind == Place::Linear && !isHelper(call) && !call.isInlineAsm())
			refuse(call,
			       "a function that is not part of the lambda's own program gets an address of its memory");
		else if (place.kind == Place::Linear || (place.kind == Place::Variable && layout.has(place.variable)))
			call.setArgOperand(i, addressOf(pointer, place, at));
	}
}

Value *Rewriter::addressOf(Value *pointer, Place place, IRBuilder<> &at)
{
	Value *number = numbers.value(pointer, place, at), *address = layout.memory();

	if (!place.variable || !layout.isOwn(place.variable))
		return at.CreatePtrAdd(address, number);
	address = at.CreatePtrAdd(at.CreatePtrAdd(address, numbers.ownCopy()), number);
	return at.CreatePtrAdd(address, at.getInt64(layout.at(place.variable)));
}

void Rewriter::rewrite(Instruction &inst)
{
	if (auto *store = dyn_cast<StoreInst>(&inst))
		rewriteStore(*store);
	else if (auto *compare = dyn_cast<ICmpInst>(&inst))
		rewriteCompare(*compare);
	else if (auto *call = dyn_cast<CallBase>(&inst))
		rewriteCall(*call);
	else if (auto *cast = dyn_cast<PtrToIntInst>(&inst)) {
		IRBuilder<> at(cast);
		Place place = provenance.of(cast->getPointerOperand());
		if (!place.isNumber())
			return;
		Value *number = numbers.value(cast->getPointerOperand(), place, at);
		cast->replaceAllUsesWith(at.CreateZExtOrTrunc(number, cast->getType()));
		dead.push_back(cast);
	}
}

// void *__lambda_resolve(const void *p, uint32_t len, uint32_t max) gives the real address of len bytes at p. Spare room behind them
// makes any offset in the variable acceptable to the verifier.
void Rewriter::emit(const Resolve &resolve)
{
	CallBase &call = *resolve.call;
	IRBuilder<> at(&call);
	auto *max = dyn_cast<ConstantInt>(call.getArgOperand(2));

	if (!max || max->getZExtValue() > SpareBytes)
		return refuse(call,
			      "the length that a helper is given has to be bounded by a constant of at most 2,048");
	uint64_t low = resolve.place.variable ? 0 : GuardBytes;
	uint64_t spare = resolve.place.variable ? max->getZExtValue() : 0;
	uint64_t room = guards.room(resolve.place);
	Value *limit = room > low + spare ? guards.limit(at, resolve.place, low + spare) : at.getInt64(0);
	Value *from = makeOpaque(at, at.CreateSub(resolve.number, at.getInt64(low)));
	guards.faultIf(at.CreateICmpUGT(from, limit), &call);
	at.SetInsertPoint(&call);
	Value *len = at.CreateZExtOrTrunc(call.getArgOperand(1), at.getInt64Ty());
	Value *left = spare ? static_cast<Value *>(max) : at.CreateSub(limit, from);
	guards.faultIf(at.CreateICmpUGT(len, at.CreateZExtOrTrunc(left, at.getInt64Ty())), &call);
	at.SetInsertPoint(&call);
	Value *address = at.CreatePtrAdd(resolve.place.variable ? resolve.place.variable : layout.memory(), from);
	call.replaceAllUsesWith(low ? at.CreatePtrAdd(address, at.getInt64(low)) : address);
	call.eraseFromParent();
}

// Request variables such as the heap begin anew: their first word is zero.
void Rewriter::beginRequest()
{
	for (GlobalVariable *variable : layout.requestVariables()) {
		Value *copy = numbers.ownCopy();
		IRBuilder<> at(cast<Instruction>(copy)->getNextNode());
		Value *number = at.CreateAdd(copy, at.getInt64(layout.at(variable)));
		at.CreateStore(at.getInt64(0), at.CreatePtrAdd(layout.memory(), number));
	}
}

void Rewriter::run()
{
	SmallVector<Instruction *, 64> all;
	SmallVector<Access, 64> accesses;

	// In dominator-tree order, so that a guard is known before the accesses that it dominates.
	for (auto *node : depth_first(tree.getRootNode()))
		for (Instruction &inst : *node->getBlock())
			all.push_back(&inst);
	for (Instruction *inst : all) {
		if (isa<LoadInst>(inst) && inst->getType()->isPointerTy()) {
			Number number = numbers.of(inst, { Place::Linear });
			inst = cast<Instruction>(number.root); // the load that stays
		}
		append_range(accesses, accessesOf(*inst, provenance));
	}
	for (Instruction *inst : all)
		rewrite(*inst);
	for (Access &access : accesses)
		access.number = numbers.of(access.inst->getOperand(access.operand), access.place);
	numbers.finish();
	for (const Access &access : accesses)
		guards.add(access);
	guards.emit();
	for (const Resolve &resolve : resolves)
		emit(resolve);
	beginRequest();
	for (Instruction *inst : dead)
		inst->eraseFromParent();
}

namespace
{

class MemoryPass : public PassInfoMixin<MemoryPass>
{
      public:
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);
};

} // namespace

static void cleanUp(Function &function, FunctionAnalysisManager &analyses)
{
	FunctionPassManager passes;

	analyses.invalidate(function, PreservedAnalyses::none());
	passes.addPass(EarlyCSEPass());
	passes.addPass(ADCEPass());
	passes.run(function, analyses);
}

static void prepare(Function &function, FunctionAnalysisManager &analyses)
{
	FunctionPassManager passes;

	if (isMetered(*function.getParent()))
		unrollShort(function, analyses);
	passes.addPass(SeparateConstOffsetFromGEPPass());
	passes.addPass(EarlyCSEPass());
	passes.run(function, analyses);
}

// Addresses in constant expressions become instructions.
static void nameAddresses(Module &module)
{
	SmallVector<Constant *, 16> globals;

	for (GlobalVariable &global : module.globals())
		if (!isNative(global))
			globals.push_back(&global);
	convertUsersOfConstantsToInstructions(globals);
}

PreservedAnalyses MemoryPass::run(Module &module, ModuleAnalysisManager &manager)
{
	auto &analyses = manager.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();

	if (!isOrdinary(module))
		return PreservedAnalyses::all();
	for (Function &function : module)
		if (isProgram(function))
			prepare(function, analyses);
	nameAddresses(module);
	Provenance provenance(module);
	provenance.report();
	Layout layout(module, provenance);
	layout.report(provenance);
	remarkVariables(module, provenance, layout);
	for (Function &function : module) {
		if (!isProgram(function))
			continue;
		Rewriter(function, provenance, layout, analyses).run();
		cleanUp(function, analyses);
	}
	layout.rewriteInitializers();
	layout.removeMoved();
	return PreservedAnalyses::none();
}

void lambda::addMemory(ModulePassManager &passes)
{
	passes.addPass(MemoryPass());
}
