// SPDX-License-Identifier: Apache-2.0
// Inline: in ordinary C, everything that loops or touches memory is inlined into the program that the kernel calls, so that all pointers
// are seen at once. Code that is already written for the verifier is recognised here, and left as it is.
#include "diagnose.h"
#include "loops.h"
#include "memory.h"
#include "passes.h"
#include "program.h"
#include "provenance.h"
#include "ranges.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;
using namespace lambda;

static const char *const ordinaryName = "lambda.ordinary", *const meteredName = "lambda.metered";

bool lambda::isProgram(const Function &function)
{
	return !function.isDeclaration() && function.getSection() == "xdp.frags";
}

bool lambda::isOrdinary(const Module &module)
{
	return module.getNamedMetadata(ordinaryName);
}

void lambda::setOrdinary(Module &module)
{
	module.getOrInsertNamedMetadata(ordinaryName);
}

bool lambda::isMetered(const Module &module)
{
	return module.getNamedMetadata(meteredName);
}

void lambda::setMetered(Module &module)
{
	module.getOrInsertNamedMetadata(meteredName);
}

void lambda::removeMarks(Module &module)
{
	for (const char *name : { ordinaryName, meteredName })
		if (auto *mark = module.getNamedMetadata(name))
			mark->eraseFromParent();
}

namespace
{

class MergePass : public PassInfoMixin<MergePass>
{
      public:
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);
};

// Looks for what the verifier would not accept as it is.
class Survey
{
      public:
	Survey(Module &module, FunctionAnalysisManager &analyses) : provenance(module), analyses(analyses)
	{
	}

	bool isOrdinary(Function &);

      private:
	bool isOrdinary(Instruction &, VerifiedRanges &);
	bool isProven(Value *address, uint64_t size, Instruction &at, VerifiedRanges &);

	Provenance provenance;
	FunctionAnalysisManager &analyses;
};

} // namespace

// Whether the verifier sees that an access is within its global.
bool Survey::isProven(Value *address, uint64_t size, Instruction &at, VerifiedRanges &ranges)
{
	const DataLayout &data = at.getModule()->getDataLayout();
	ConstantRange range(APInt(64, 0));

	while (auto *gep = dyn_cast<GEPOperator>(address)) {
		MapVector<Value *, APInt> variable;
		APInt offset(64, 0);
		if (!gep->collectOffset(data, 64, variable, offset))
			return false;
		range = range.add(ConstantRange(offset));
		for (auto &[index, scale] : variable) {
			ConstantRange term = ranges.of(index, &at);
			term = term.getBitWidth() < 64 ? term.signExtend(64) : term;
			range = range.add(term.multiply(ConstantRange(scale)));
		}
		address = gep->getPointerOperand();
	}
	auto *global = dyn_cast<GlobalVariable>(address);
	if (!global)
		return false;
	uint64_t room = data.getTypeAllocSize(global->getValueType());
	return size <= room && range.getUnsignedMax().ule(room - size);
}

// Whether the verifier can also treat an alloca as a variable on the program's stack.
static bool isStackVariable(const Value *pointer)
{
	for (const User *user : pointer->users()) {
		auto *gep = dyn_cast<GetElementPtrInst>(user);
		auto *call = dyn_cast<CallBase>(user);
		auto *store = dyn_cast<StoreInst>(user);
		if (gep && gep->hasAllConstantIndices() && isStackVariable(gep))
			continue;
		if (call && (isHelper(*call) || isa<IntrinsicInst>(call)))
			continue;
		if (!isa<LoadInst>(user) && !(store && store->getValueOperand() != pointer))
			return false;
	}
	return true;
}

bool Survey::isOrdinary(Instruction &inst, VerifiedRanges &ranges)
{
	auto *copy = dyn_cast<MemIntrinsic>(&inst);
	auto *call = dyn_cast<CallBase>(&inst);
	auto *pointer = const_cast<Value *>(getLoadStorePointerOperand(&inst));

	if (inst.getType()->isFloatingPointTy() || (isa<AllocaInst>(inst) && !isStackVariable(&inst)))
		return true;
	if (copy && !isa<ConstantInt>(copy->getLength()))
		return true;
	if (call && (isResolve(*call) || (call->getCalledFunction() && !call->getCalledFunction()->isDeclaration() &&
					  any_of(call->args(), [](Value *argument) {
						  return argument->getType()->isPointerTy() &&
							 isa<AllocaInst>(argument);
					  }))))
		return true;
	if (!pointer || isOfSdk(inst.getDebugLoc()))
		return false;
	Place place = provenance.of(pointer);
	uint64_t size = inst.getModule()->getDataLayout().getTypeStoreSize(getLoadStoreType(&inst));
	if (place.kind == Place::Variable && isa<GlobalVariable>(place.variable))
		return !isProven(pointer, size, inst, ranges);
	return place.kind == Place::Linear || place.kind == Place::Null;
}

// Whether the kernel's calling convention has room for values of a type: one register.
static bool fitsRegister(const Type *type)
{
	return type->isVoidTy() || type->isPointerTy() || type->isFloatTy() || type->isDoubleTy() ||
	       (type->isIntegerTy() && type->getIntegerBitWidth() <= 64);
}

// Whether the kernel can call a function: by r1 to r5, for a result in r0.
static bool isCallable(const Function &function)
{
	return function.arg_size() <= 5 && fitsRegister(function.getReturnType()) &&
	       all_of(function.args(), [](const Argument &argument) { return fitsRegister(argument.getType()); });
}

bool Survey::isOrdinary(Function &function)
{
	auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
	VerifiedRanges ranges(analyses.getResult<LazyValueAnalysis>(function), &evolution);

	if (!isCallable(function) || !isWalkable(analyses.getResult<LoopAnalysis>(function), evolution, provenance))
		return true;
	return any_of(instructions(function), [&](Instruction &inst) { return isOrdinary(inst, ranges); });
}

static bool holdsPointer(const Type *type)
{
	return type->isPointerTy() || any_of(type->subtypes(), [](const Type *member) { return holdsPointer(member); });
}

static bool namesAddress(const Value *value)
{
	auto *constant = dyn_cast<Constant>(value);

	return holdsPointer(value->getType()) ||
	       (constant && any_of(constant->operands(), [](const Use &use) { return namesAddress(use); }));
}

static bool computesWithNumbers(const Instruction &inst)
{
	auto *call = dyn_cast<CallBase>(&inst);

	if (isa<DbgInfoIntrinsic>(inst))
		return true;
	if (inst.mayReadOrWriteMemory() || (call && !isa<IntrinsicInst>(call) &&
					    !(call->getCalledFunction() && isOfRuntime(*call->getCalledFunction()))))
		return false;
	return !holdsPointer(inst.getType()) &&
	       none_of(call ? call->args() : inst.operands(), [](const Use &use) { return namesAddress(use); });
}

// Whether a function may stay a function: without loops, the verifier proves it once for all arguments. All its values are numbers,
// because Provenance decides within one function what an address becomes.
static bool isLeaf(Function &function, FunctionAnalysisManager &analyses)
{
	return isCallable(function) && analyses.getResult<LoopAnalysis>(function).empty() &&
	       !holdsPointer(function.getReturnType()) &&
	       none_of(function.args(), [](Argument &argument) { return holdsPointer(argument.getType()); }) &&
	       all_of(instructions(function), computesWithNumbers);
}

// Runs LLVM's own passes again, now that inlined code meets its surroundings.
static void simplify(Module &module, ModuleAnalysisManager &manager)
{
	ModulePassManager passes;
	FunctionPassManager function;
	LoopPassManager loop;

	loop.addPass(LoopRotatePass());
	loop.addPass(LICMPass(LICMOptions()));
	function.addPass(SROAPass(SROAOptions::ModifyCFG));
	function.addPass(EarlyCSEPass(true));
	function.addPass(SimplifyCFGPass());
	function.addPass(InstCombinePass());
	function.addPass(createFunctionToLoopPassAdaptor(std::move(loop), /*UseMemorySSA=*/true));
	function.addPass(GVNPass());
	function.addPass(createFunctionToLoopPassAdaptor(IndVarSimplifyPass()));
	function.addPass(LoopUnrollPass(LoopUnrollOptions(3, false, false).setPartial(false).setRuntime(false)));
	function.addPass(SROAPass(SROAOptions::ModifyCFG));
	function.addPass(InstCombinePass());
	function.addPass(SimplifyCFGPass());
	passes.addPass(AlwaysInlinerPass());
	passes.addPass(GlobalDCEPass());
	passes.addPass(createModuleToFunctionPassAdaptor(std::move(function)));
	passes.run(module, manager);
}

PreservedAnalyses MergePass::run(Module &module, ModuleAnalysisManager &manager)
{
	auto &analyses = manager.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
	Survey survey(module, analyses);

	if (none_of(module,
		    [&](Function &function) { return !function.isDeclaration() && survey.isOrdinary(function); }))
		return PreservedAnalyses::all();
	setOrdinary(module);
	for (Function &function : module) {
		if (function.isDeclaration() || isProgram(function) || isLeaf(function, analyses))
			continue;
		function.removeFnAttr(Attribute::NoInline);
		function.removeFnAttr(Attribute::OptimizeNone);
		function.addFnAttr(Attribute::AlwaysInline);
		function.setLinkage(GlobalValue::InternalLinkage);
	}
	for (Function &function : module)
		expandMemoryIntrinsics(function);
	manager.invalidate(module, PreservedAnalyses::none());
	simplify(module, manager);
	for (Function &function : module)
		if (isProgram(function))
			makeReducible(function, analyses); // LLVM may have undone it
	Provenance provenance(module);
	for (Function &function : module)
		if (isProgram(function) &&
		    !isWalkableOnAllPaths(function, analyses.getResult<LoopAnalysis>(function),
					  analyses.getResult<ScalarEvolutionAnalysis>(function), provenance))
			setMetered(module);
	return PreservedAnalyses::none();
}

void lambda::addInline(ModulePassManager &passes)
{
	passes.addPass(MergePass());
}
