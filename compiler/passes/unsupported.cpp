// SPDX-License-Identifier: Apache-2.0
// C that has no form in BPF is refused at its line, before LLVM's code generator meets it and gives up without naming one. A trap becomes a
// fault, and a loop with two entries gets a single header.
#include "diagnose.h"
#include "faults.h"
#include "loops.h"
#include "passes.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace
{

bool isTrap(const Instruction &inst)
{
	auto *call = dyn_cast<IntrinsicInst>(&inst);
	Intrinsic::ID id = call ? call->getIntrinsicID() : Intrinsic::not_intrinsic;

	return id == Intrinsic::trap || id == Intrinsic::ubsantrap;
}

bool isAtomicOperation(AtomicRMWInst::BinOp op)
{
	switch (op) {
	case AtomicRMWInst::Xchg:
	case AtomicRMWInst::Add:
	case AtomicRMWInst::Sub:
	case AtomicRMWInst::And:
	case AtomicRMWInst::Or:
	case AtomicRMWInst::Xor:
		return true;
	default:
		return false;
	}
}

const char *whyNotAtomic(const Instruction &inst)
{
	auto *change = dyn_cast<AtomicRMWInst>(&inst);
	auto *exchange = dyn_cast<AtomicCmpXchgInst>(&inst);
	if (!change && !exchange)
		return nullptr;
	unsigned width =
		(change ? change->getValOperand() : exchange->getNewValOperand())->getType()->getScalarSizeInBits();
	if (width != 32 && width != 64)
		return "an atomic operation on a value that has not 32 or 64 bits: use uint32_t or uint64_t";
	if (change && !isAtomicOperation(change->getOperation()))
		return "an atomic operation that BPF has not: do it in a loop around __sync_val_compare_and_swap()";
	return nullptr;
}

// bpf_trace_printk in include/uapi/linux/bpf.h.
constexpr unsigned traceHelper = 6;

// A function is called by name, a kernel helper by number. Package compiler knows remedies by name.
std::string whyNotVariadic(const CallBase &call)
{
	const Value *callee = call.getCalledOperand()->stripPointerCasts();
	if (const auto *function = dyn_cast<Function>(callee))
		return ("a call of '" + function->getName() + "', which takes a variable number of arguments").str();
	if (PatternMatch::match(callee, PatternMatch::m_IntToPtr(PatternMatch::m_SpecificInt(traceHelper))))
		return "a call of 'bpf_trace_printk', which takes a variable number of arguments";
	return "a call with a variable number of arguments: give the function a fixed number, or an array";
}

std::string whyNot(const Instruction &inst)
{
	if (const char *why = whyNotAtomic(inst))
		return why;
	if (isa<IndirectBrInst>(inst))
		return "a goto to a label's address: use a switch";
	if (auto *call = dyn_cast<CallBase>(&inst); call && call->getFunctionType()->isVarArg())
		return whyNotVariadic(*call);
	auto *call = dyn_cast<IntrinsicInst>(&inst);
	switch (call ? call->getIntrinsicID() : Intrinsic::not_intrinsic) {
	case Intrinsic::returnaddress:
	case Intrinsic::frameaddress:
	case Intrinsic::sponentry:
		return "the stack has no address: leave this out";
	default:
		return "";
	}
}

// Removes what was refused, so that one build finds everything else to refuse.
void remove(Instruction &inst)
{
	if (inst.isTerminator()) {
		changeToUnreachable(&inst);
		return;
	}
	if (!inst.getType()->isVoidTy())
		inst.replaceAllUsesWith(Constant::getNullValue(inst.getType()));
	inst.eraseFromParent();
}

struct Reducible : PassInfoMixin<Reducible> {
	PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses)
	{
		return lambda::makeReducible(function, analyses) ? PreservedAnalyses::none() : PreservedAnalyses::all();
	}
};

struct Unsupported : PassInfoMixin<Unsupported> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		SmallVector<Instruction *> traps, others;
		SmallVector<Function *> unused;
		for (Function &function : module) {
			if (function.isVarArg())
				continue; // its calls are refused
			for (Instruction &inst : instructions(function))
				if (isTrap(inst))
					traps.push_back(&inst);
				else if (!whyNot(inst).empty())
					others.push_back(&inst);
		}
		for (Instruction *inst : traps) {
			changeToUnreachable(inst->getNextNode());
			Instruction *end = inst->getParent()->getTerminator();
			IRBuilder<> at(inst);
			lambda::createFault(at, LN_FAULT_OWN);
			inst->eraseFromParent();
			end->eraseFromParent();
		}
		for (Instruction *inst : others) {
			lambda::refuse(*inst, whyNot(*inst));
			remove(*inst);
		}
		for (Function &function : module)
			if (function.isVarArg() && function.use_empty())
				unused.push_back(&function);
		for (Function *function : unused)
			function->eraseFromParent();
		return traps.empty() && others.empty() && unused.empty() ? PreservedAnalyses::all()
									 : PreservedAnalyses::none();
	}
};

// Runs before LLVM's passes, which turn some long doubles into doubles.
struct LongDouble : PassInfoMixin<LongDouble> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		auto isLong = [](const Value *value) { return value->getType()->getScalarType()->isFP128Ty(); };
		for (Function &function : module) {
			for (Instruction &inst : instructions(function)) {
				if (!isLong(&inst) && none_of(inst.operands(), isLong))
					continue;
				lambda::refuse(inst,
					       "long double is not the same on the NIC and on the host: use double");
				break;
			}
		}
		return PreservedAnalyses::all();
	}
	static bool isRequired()
	{
		return true;
	}
};

} // namespace

void lambda::addLongDouble(ModulePassManager &passes)
{
	passes.addPass(LongDouble());
}

void lambda::addUnsupported(ModulePassManager &passes)
{
	passes.addPass(Unsupported());
	passes.addPass(createModuleToFunctionPassAdaptor(Reducible()));
}
