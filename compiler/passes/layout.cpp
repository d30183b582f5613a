// SPDX-License-Identifier: Apache-2.0
#include "layout.h"
#include "diagnose.h"
#include "percpu.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace lambda;

// A global of the SDK that belongs to one request, such as the heap (sdk/stdlib.h).
static bool isOfRequest(const GlobalVariable &global)
{
	return global.getSection() == ".bss..request";
}

uint64_t lambda::sizeOf(const Value *variable, const DataLayout &layout)
{
	if (auto *local = dyn_cast<AllocaInst>(variable))
		return local->getAllocationSize(layout).value_or(TypeSize::getFixed(0));
	return layout.getTypeAllocSize(cast<GlobalVariable>(variable)->getValueType());
}

// The kernel gives a program 512 bytes of stack, which variables share with spilled registers.
static const uint64_t stackVariableMax = 16;

bool lambda::staysOnStack(const AllocaInst &local)
{
	SmallVector<const Value *, 8> pointers{ &local };
	const DataLayout &layout = local.getModule()->getDataLayout();

	if (sizeOf(&local, layout) > stackVariableMax)
		return false;
	while (!pointers.empty()) {
		const Value *pointer = pointers.pop_back_val();
		for (const User *user : pointer->users()) {
			auto *gep = dyn_cast<GetElementPtrInst>(user);
			auto *store = dyn_cast<StoreInst>(user);
			auto *intrinsic = dyn_cast<IntrinsicInst>(user);
			if (gep && gep->hasAllConstantIndices())
				pointers.push_back(gep);
			else if (!isa<LoadInst>(user) && !(store && store->getValueOperand() != pointer) &&
				 !(intrinsic && intrinsic->isLifetimeStartOrEnd()))
				return false;
		}
	}
	return true;
}

// Offsets are aligned as the author asked: a program may compute with the low bits of an address.
static Align alignmentOf(const Value *variable)
{
	auto *local = dyn_cast<AllocaInst>(variable);

	return std::max(Align(8), local ? local->getAlign() : cast<GlobalVariable>(variable)->getAlign().valueOrOne());
}

uint64_t Layout::place(MapVector<Value *, uint64_t> &where, Value *variable, uint64_t at)
{
	Align alignment = alignmentOf(variable);
	strictest = std::max(strictest, alignment);
	at = alignTo(at, alignment);
	where[variable] = at;
	return at + sizeOf(variable, module.getDataLayout());
}

Layout::Layout(Module &module, const Provenance &provenance) : module(module)
{
	for (GlobalVariable &global : module.globals()) {
		if (isOfRequest(global)) {
			stride = place(own, &global, stride);
			ofRequest.push_back(&global);
		} else if (provenance.escaped().count(&global)) {
			copiesAt = place(shared, &global, copiesAt);
		}
	}
	for (Function &function : module) {
		for (Instruction &inst : instructions(function)) {
			auto *local = dyn_cast<AllocaInst>(&inst);
			if (local && (provenance.escaped().count(local) || !staysOnStack(*local)))
				stride = place(own, local, stride);
			if (auto *pointer = getLoadStorePointerOperand(&inst))
				forged |= provenance.of(const_cast<Value *>(pointer)).kind == Place::Linear;
		}
	}
	copiesAt = alignTo(copiesAt, strictest);
	stride = alignTo(stride, strictest);
}

// A variable that the loader hands from revision to revision, or that the SDK addresses, has a map of its own.
void Layout::report(const Provenance &provenance) const
{
	for (auto &[variable, by] : provenance.escaped()) {
		auto *global = dyn_cast<GlobalVariable>(variable);
		if (!global || !global->hasSection() || isOfRequest(*global) || !by)
			continue;
		refuse(*by, "the address of \"" + global->getName() +
				    "\" is stored or mixed with others: a kept object, or " +
				    "a message, is used by its name and an index");
	}
}

// Goes by lists of globals only: the locals in `own` may be gone by now.
void Layout::removeMoved()
{
	SmallVector<GlobalVariable *, 16> moved(ofRequest.begin(), ofRequest.end());

	for (auto &[variable, at] : shared)
		moved.push_back(cast<GlobalVariable>(variable));
	for (GlobalVariable *global : moved) {
		global->removeDeadConstantUsers();
		if (global->use_empty())
			global->eraseFromParent();
	}
}

// An address in an initializer becomes its offset in linear memory.
Constant *Layout::rewrite(Constant *constant)
{
	auto *number = Type::getInt64Ty(module.getContext());

	if (constant->getType()->isPointerTy() && !isa<ConstantPointerNull>(constant)) {
		APInt offset(64, 0);
		auto *base = constant->stripAndAccumulateConstantOffsets(module.getDataLayout(), offset, true);
		if (!shared.count(const_cast<Value *>(static_cast<const Value *>(base))))
			return constant;
		uint64_t to = at(const_cast<Value *>(static_cast<const Value *>(base))) + offset.getSExtValue();
		return ConstantExpr::getIntToPtr(ConstantInt::get(number, to), constant->getType());
	}
	if (!isa<ConstantAggregate>(constant))
		return constant;
	SmallVector<Constant *, 16> operands;
	for (Value *operand : constant->operands())
		operands.push_back(rewrite(cast<Constant>(operand)));
	if (auto *array = dyn_cast<ArrayType>(constant->getType()))
		return ConstantArray::get(array, operands);
	if (auto *record = dyn_cast<StructType>(constant->getType()))
		return ConstantStruct::get(record, operands);
	return ConstantVector::get(operands);
}

void Layout::rewriteInitializers()
{
	for (GlobalVariable &global : module.globals())
		if (!isNative(global) && global.hasInitializer())
			global.setInitializer(rewrite(global.getInitializer()));
}

GlobalVariable *Layout::memory()
{
	LLVMContext &context = module.getContext();
	auto zeros = [&](uint64_t n) { return Constant::getNullValue(ArrayType::get(Type::getInt8Ty(context), n)); };
	SmallVector<Constant *, 16> content;
	uint64_t end = 0;
	bool initialized = false;

	if (map)
		return map;
	for (auto &[variable, at] : shared) {
		auto *global = cast<GlobalVariable>(variable);
		Constant *initializer = rewrite(global->getInitializer());
		content.push_back(zeros(at - end));
		content.push_back(initializer);
		initialized |= !initializer->isNullValue();
		end = at + module.getDataLayout().getTypeAllocSize(initializer->getType());
	}
	content.push_back(zeros(size() + SpareBytes - end));
	auto *initializer = initialized ? ConstantStruct::getAnon(context, content, /*Packed=*/true)
					: zeros(size() + SpareBytes);
	map = new GlobalVariable(module, initializer->getType(), false, GlobalValue::InternalLinkage, initializer,
				 "lambda_memory");
	// Zeros take no room in an object file if the section's name begins with .bss; the loader finds both as .data.memory.
	map->setSection(initialized ? ".data.memory" : ".bss..memory");
	map->setAlignment(Align(64));
	growByCopies(*map, stride);
	return map;
}
