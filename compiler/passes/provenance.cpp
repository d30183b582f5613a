// SPDX-License-Identifier: Apache-2.0
#include "provenance.h"
#include "diagnose.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

using namespace llvm;
using namespace lambda;

bool lambda::isNative(const GlobalVariable &global)
{
	StringRef section = global.getSection();

	return section == ".maps" || section == "license" || section == "llvm.metadata" || section == ".data.fuel" ||
	       global.getName().starts_with("llvm.");
}

bool lambda::isHelper(const CallBase &call)
{
	auto *callee = dyn_cast<ConstantExpr>(call.getCalledOperand());

	return callee && callee->getOpcode() == Instruction::IntToPtr;
}

bool lambda::isOpaque(const Value *value)
{
	auto *call = dyn_cast<CallInst>(value);
	auto *code = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;

	return code && code->getAsmString().empty() && call->arg_size() == 1 &&
	       call->getType() == call->getArgOperand(0)->getType();
}

bool lambda::isResolve(const CallBase &call)
{
	const Function *callee = call.getCalledFunction();

	return callee && callee->getName() == "__lambda_resolve";
}

bool lambda::isMasked(const Value &value)
{
	auto *call = dyn_cast<IntrinsicInst>(&value);

	return call && call->getIntrinsicID() == Intrinsic::ptrmask;
}

// The packet's ends are integers in the context: a pointer made from one is the kernel's.
static bool isPacketAddress(const Value *value, unsigned depth = 0)
{
	if (depth > 8)
		return false;
	if (auto *cast = dyn_cast<ZExtInst>(value))
		return isPacketAddress(cast->getOperand(0), depth + 1);
	if (auto *phi = dyn_cast<PHINode>(value))
		return all_of(phi->incoming_values(), [&](const Use &use) { return isPacketAddress(use, depth + 1); });
	if (isOpaque(value))
		return isPacketAddress(cast<CallInst>(value)->getArgOperand(0), depth + 1);
	auto *load = dyn_cast<LoadInst>(value);
	return load && load->getType()->isIntegerTy(32) &&
	       isa<Argument>(load->getPointerOperand()->stripInBoundsConstantOffsets());
}

// The SDK's own lines, the kernel's helpers, and whatever else is outside the program return kernel addresses.
static bool givesKernelAddress(const Instruction &inst)
{
	auto *call = dyn_cast<CallBase>(&inst);
	const Function *callee = call ? call->getCalledFunction() : nullptr;

	return isOfSdk(inst.getDebugLoc()) || (call && (!callee || callee->isDeclaration()));
}

Provenance::Provenance(Module &module)
{
	size_t before;

	escapeInitializers(module);
	do {
		before = escapes.size();
		places.clear();
		conflicts.clear();
		iterate(module);
		for (Function &function : module)
			for (Instruction &inst : instructions(function))
				findEscapes(inst);
	} while (escapes.size() != before);
}

// Meets over all paths until nothing changes. Places only move down the lattice, so this ends.
void Provenance::iterate(Module &module)
{
	bool changed;

	do {
		changed = false;
		for (Function &function : module) {
			for (Instruction &inst : instructions(function)) {
				if (!inst.getType()->isPointerTy())
					continue;
				Place now = transfer(inst);
				Place &place = places[&inst];

				changed |= place != now;
				place = now;
			}
		}
	} while (changed);
}

Place Provenance::of(Value *value) const
{
	if (isa<ConstantPointerNull>(value) || isa<UndefValue>(value))
		return { Place::Null };
	if (auto *global = dyn_cast<GlobalVariable>(value)) {
		if (isNative(*global))
			return { Place::Native };
		return escapes.count(global) ? Place{ Place::Linear } : Place{ Place::Variable, global };
	}
	if (auto *expr = dyn_cast<ConstantExpr>(value)) {
		if (expr->getOpcode() == Instruction::GetElementPtr)
			return of(expr->getOperand(0));
		return { expr->getOpcode() == Instruction::IntToPtr ? Place::Linear : Place::Native };
	}
	if (isa<Instruction>(value)) {
		auto found = places.find(value);
		return found == places.end() ? Place{} : found->second;
	}
	return { Place::Native };
}

Place Provenance::transfer(Instruction &inst)
{
	if (isa<AllocaInst>(inst))
		return escapes.count(&inst) ? Place{ Place::Linear } : Place{ Place::Variable, &inst };
	if (isa<GetElementPtrInst>(inst) || isa<FreezeInst>(inst))
		return of(inst.getOperand(0));
	if (isa<LoadInst>(inst))
		return { Place::Linear };
	if (isa<IntToPtrInst>(inst))
		return { isPacketAddress(inst.getOperand(0)) ? Place::Native : Place::Linear };
	if (auto *phi = dyn_cast<PHINode>(&inst)) {
		Place place;
		for (Value *value : phi->incoming_values())
			place = meet(place, of(value), inst);
		return place;
	}
	if (auto *select = dyn_cast<SelectInst>(&inst))
		return meet(of(select->getTrueValue()), of(select->getFalseValue()), inst);
	if (isOpaque(&inst))
		return of(cast<CallInst>(inst).getArgOperand(0));
	if (isMasked(inst))
		return escaped(of(inst.getOperand(0)), &inst);
	if (!givesKernelAddress(inst))
		conflicts.insert(
			{ &inst, "the compiler cannot tell what this pointer points into: keep an index instead" });
	return { Place::Native };
}

Place Provenance::meet(Place a, Place b, Instruction &at)
{
	if (a == b || b.kind == Place::Unknown || b.kind == Place::Null)
		return a.kind == Place::Unknown ? b : a;
	if (a.kind == Place::Unknown || a.kind == Place::Null)
		return b;
	if (a.kind == Place::Native || b.kind == Place::Native) {
		conflicts.insert({ &at,
				   "a pointer is sometimes into the packet or a map, sometimes into the lambda's own "
				   "memory: copy the bytes to one place first" });
		return { Place::Native };
	}
	escaped(a, &at);
	return escaped(b, &at);
}

// Moves a variable to linear memory, where its address is an offset like any other.
Place Provenance::escaped(Place place, Instruction *by)
{
	if (place.kind != Place::Variable)
		return place;
	escapes.insert({ place.variable, by });
	return { Place::Linear };
}

void Provenance::escape(Value *pointer, Instruction *by)
{
	Place place = of(pointer);

	escaped(place, by);
	if (place.kind == Place::Native && !isa<Function>(pointer) && isa_and_nonnull<StoreInst>(by))
		conflicts.insert({ by, "a pointer into the packet or a map is stored: keep an offset instead" });
}

// A pointer may be an integer if only its distance to others into the same variable counts.
static bool isDistance(const PtrToIntInst &cast, const Provenance &provenance, Place place)
{
	return all_of(cast.users(), [&](const User *user) {
		auto *inst = dyn_cast<Instruction>(user);
		if (!inst || (inst->getOpcode() != Instruction::Sub && !isa<ICmpInst>(inst)))
			return false;
		return all_of(inst->operands(), [&](const Use &use) {
			auto *other = dyn_cast<PtrToIntOperator>(use.get());
			return other && provenance.of(const_cast<Value *>(other->getPointerOperand())) == place;
		});
	});
}

void Provenance::findEscapes(Instruction &inst)
{
	if (auto *store = dyn_cast<StoreInst>(&inst)) {
		if (store->getValueOperand()->getType()->isPointerTy())
			escape(store->getValueOperand(), &inst);
	} else if (auto *compare = dyn_cast<ICmpInst>(&inst)) {
		if (!compare->getOperand(0)->getType()->isPointerTy())
			return;
		Place a = of(compare->getOperand(0)), b = of(compare->getOperand(1));
		if (a != b && a.kind != Place::Null && b.kind != Place::Null && a.kind != Place::Native &&
		    b.kind != Place::Native) {
			escape(compare->getOperand(0), &inst);
			escape(compare->getOperand(1), &inst);
		}
	} else if (auto *cast = dyn_cast<PtrToIntInst>(&inst)) {
		Place place = of(cast->getPointerOperand());
		if (place.kind == Place::Variable && !isDistance(*cast, *this, place))
			escape(cast->getPointerOperand(), &inst);
	} else if (auto *call = dyn_cast<CallBase>(&inst)) {
		findEscapesInCall(*call);
	} else if (isa<AtomicCmpXchgInst>(inst) || isa<AtomicRMWInst>(inst) || isa<InsertValueInst>(inst)) {
		for (Value *operand : drop_begin(inst.operands()))
			if (operand->getType()->isPointerTy())
				escape(operand, &inst);
	}
	// Constant expressions that turn addresses into integers.
	for (Value *operand : inst.operands())
		if (auto *expr = dyn_cast<ConstantExpr>(operand))
			if (expr->getOpcode() == Instruction::PtrToInt)
				escape(expr->getOperand(0), &inst);
}

void Provenance::findEscapesInCall(CallBase &call)
{
	if (isResolve(call)) {
		// Only linear memory, and what the SDK laid out so, has spare room behind it.
		Place place = of(call.getArgOperand(0));
		auto *global = dyn_cast_or_null<GlobalVariable>(place.variable);
		if (place.variable && !(global && global->hasSection()))
			escapes.insert({ place.variable, &call });
		return;
	}
	if (isa<IntrinsicInst>(call) || isHelper(call) || isOpaque(&call))
		return;
	for (Value *argument : call.args())
		if (argument->getType()->isPointerTy() && of(argument).kind == Place::Variable && !call.isInlineAsm())
			escape(argument, &call);
}

// Finds the globals whose addresses are in a constant.
static void addressesIn(Constant *constant, SmallVectorImpl<GlobalVariable *> &found)
{
	if (auto *global = dyn_cast<GlobalVariable>(constant))
		found.push_back(global);
	else if (!isa<GlobalValue>(constant))
		for (Value *operand : constant->operands())
			addressesIn(cast<Constant>(operand), found);
}

void Provenance::escapeInitializers(Module &module)
{
	for (GlobalVariable &global : module.globals()) {
		SmallVector<GlobalVariable *, 8> found;

		if (isNative(global) || !global.hasInitializer())
			continue;
		for (Value *operand : global.getInitializer()->operands())
			addressesIn(cast<Constant>(operand), found);
		if (auto *self = dyn_cast<GlobalVariable>(global.getInitializer()))
			found.push_back(self);
		for (GlobalVariable *pointed : found)
			if (!isNative(*pointed))
				escapes.insert({ pointed, nullptr });
	}
}

void Provenance::report() const
{
	for (auto &[inst, message] : conflicts) {
		auto *store = dyn_cast<StoreInst>(inst);
		auto *escape = store ? escapes.find(getUnderlyingObject(store->getPointerOperand())) : escapes.end();
		// If the SDK stores the pointer, the author's mistake is to let the address of the variable that holds it escape.
		if (escape != escapes.end() && escape->second && !isAuthors(*inst))
			refuse(*escape->second,
			       "the address of headers leaves the SDK's functions: give it to them only");
		else
			refuse(*inst, message);
	}
}
