// SPDX-License-Identifier: Apache-2.0
// Recursion: the kernel bounds the depth of calls, and all that touches memory has to be inlined. Functions that call each other become one
// function with a stack of frames in memory. Each frame holds what is needed after its call returns. LLVM has turned tail recursion into
// a loop, or it needs no frame here.
//
//	enter g: parameters, from their variables; g's body
//	call h:  save the live variables and the call's number in the frame; step to the next frame; enter h
//	return:  in the first frame, the result; else step back and resume the call of that number with what was saved
//
// All values between these steps are variables, which are promoted to registers in the end.
#include "faults.h"
#include "diagnose.h"
#include "passes.h"
#include "program.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/Analysis/GlobalsModRef.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/FixIrreducible.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LowerSwitch.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace
{

// The least that all frames of a group of functions have together. A deeper recursion is a fault.
const uint64_t framesMin = 16384;
const uint64_t framesAlign = 16;

const char tailMark[] = "lambda.tail";

using Group = SmallSetVector<Function *, 4>;

// A call between functions of the group: it is alone in a block, and another block continues after it.
struct Site {
	CallInst *call;
	Function *callee;
	BasicBlock *block, *resume;
	BitVector saved; // the variables that are live after it
};

// Makes one function of a group, for the calls that enter it through one of its functions.
class Machine
{
      public:
	Machine(const Group &group, Function &entered, uint64_t framesSize);

	Function *make();

      private:
	void makeVariables();
	void inlineBodies();
	void inlineBody(Function &);
	void forgetScopes();
	void findSites();
	void recompute();
	void demote();
	void findSaved();
	void layOut();
	void moveLocals();
	void makeReturn();
	void lower(Site &, unsigned number);
	void makeTail(CallInst &, Function &callee);
	void setParameters(IRBuilder<> &, CallInst &, Function &callee);
	Value *inFrame(IRBuilder<> &, uint64_t offset);
	AllocaInst *variable(Type *, const Twine &name);

	const Group &group;
	Function &entered;
	Function *made;
	const DataLayout &layout;
	GlobalVariable *frames = nullptr;
	const uint64_t framesSize;
	uint64_t frameSize = 8; // its first word is the number of the call that waits

	AllocaInst *top; // where the running frame begins
	DenseMap<Function *, SmallVector<AllocaInst *>> parameters;
	DenseMap<Type *, AllocaInst *>
		results; // one for each type, so that the last call of a function leaves its result there
	DenseMap<Function *, BasicBlock *> entries;
	BasicBlock *leave;
	SmallVector<std::pair<CallInst *, Function *>> tails;
	SmallVector<Site> sites;
	SmallVector<AllocaInst *> locals; // the author's, which have to be in the frame
	SmallVector<AllocaInst *> demoted;
	SmallVector<AllocaInst *> promoted;
	DenseMap<AllocaInst *, uint64_t> localsAt;
};

Machine::Machine(const Group &group, Function &entered, uint64_t framesSize)
    : group(group), entered(entered), layout(entered.getParent()->getDataLayout()), framesSize(framesSize)
{
	made = Function::Create(entered.getFunctionType(), GlobalValue::InternalLinkage,
				entered.getName() + ".iterative", entered.getParent());
	made->copyAttributesFrom(&entered);
	made->setLinkage(GlobalValue::InternalLinkage);
	made->setSubprogram(entered.getSubprogram());
	made->removeFnAttr(Attribute::Memory);
	made->removeFnAttr(Attribute::WillReturn);
	made->removeFnAttr(Attribute::Speculatable);
	for (Argument &arg : made->args())
		for (Attribute::AttrKind kind : { Attribute::NoCapture, Attribute::ReadNone, Attribute::ReadOnly,
						  Attribute::WriteOnly, Attribute::NoAlias })
			arg.removeAttr(kind);
}

Function *Machine::make()
{
	BasicBlock::Create(made->getContext(), "entry", made);
	leave = BasicBlock::Create(made->getContext(), "leave", made);
	makeVariables();
	inlineBodies();
	forgetScopes();
	findSites();
	recompute();
	demote();
	findSaved();
	layOut();
	moveLocals();
	makeReturn();
	for (auto [number, site] : enumerate(sites))
		lower(site, number);
	removeUnreachableBlocks(*made);
	DominatorTree tree(*made);
	PromoteMemToReg(promoted, tree);
	return made;
}

AllocaInst *Machine::variable(Type *type, const Twine &name)
{
	BasicBlock &entry = made->getEntryBlock();
	auto *made = new AllocaInst(type, layout.getAllocaAddrSpace(), name, entry.begin());
	promoted.push_back(made);
	return made;
}

// Whether a function passes a parameter on unchanged whenever it calls itself, such as an array that it works on.
bool isInvariant(const Group &group, Argument &arg)
{
	Function &function = *arg.getParent();
	return group.size() == 1 && !arg.hasByValAttr() && all_of(instructions(function), [&](Instruction &inst) {
		       auto *call = dyn_cast<CallInst>(&inst);
		       return !call || call->getCalledFunction() != &function ||
			      call->getArgOperand(arg.getArgNo()) == &arg;
	       });
}

// The new function has the entered function's parameters. Invariant ones need no variable.
void Machine::makeVariables()
{
	IRBuilder<> build(&made->getEntryBlock());
	top = variable(build.getInt64Ty(), "top");
	for (Function *function : group) {
		for (Argument &arg : function->args())
			parameters[function].push_back(
				isInvariant(group, arg) ? nullptr : variable(arg.getType(), arg.getName()));
		Type *type = function->getReturnType();
		if (!type->isVoidTy() && !results.count(type))
			results[type] = variable(type, "result");
		entries[function] = BasicBlock::Create(made->getContext(), function->getName(), made);
	}
	build.SetInsertPoint(&made->getEntryBlock());
	build.CreateStore(build.getInt64(0), top);
	for (auto [slot, arg] : zip(parameters[&entered], made->args()))
		if (slot)
			build.CreateStore(&arg, slot);
	build.CreateBr(entries[&entered]);
}

// Whether a call is a tail call: its result is returned at once, or by way of the phi of all results.
bool isTail(CallInst &call)
{
	Instruction *next = call.getNextNonDebugInstruction();
	Value *value = &call;
	if (!call.isTailCall())
		return false;
	if (auto *branch = dyn_cast<BranchInst>(next); branch && branch->isUnconditional()) {
		next = branch->getSuccessor(0)->getFirstNonPHIOrDbg();
		if (auto *phi = dyn_cast<PHINode>(branch->getSuccessor(0)->begin());
		    phi && phi->getIncomingValueForBlock(call.getParent()) == &call)
			value = phi;
	}
	auto *ret = dyn_cast<ReturnInst>(next);
	return ret && (call.getType()->isVoidTy() || ret->getReturnValue() == value);
}

void Machine::inlineBodies()
{
	LLVMContext &context = made->getContext();
	for (Function *function : group)
		for (Instruction &inst : instructions(function))
			if (auto *call = dyn_cast<CallInst>(&inst);
			    call && group.contains(call->getCalledFunction()) && isTail(*call))
				call->setMetadata(tailMark, MDNode::get(context, {}));
	for (Function *function : group)
		inlineBody(*function);
}

// LLVM's inliner places the body, with debug information that says where it comes from.
void Machine::inlineBody(Function &function)
{
	SmallPtrSet<Instruction *, 32> before;
	for (Instruction &inst : made->getEntryBlock())
		before.insert(&inst);
	IRBuilder<> build(entries[&function]);
	if (DISubprogram *program = made->getSubprogram())
		build.SetCurrentDebugLocation(DILocation::get(made->getContext(), program->getScopeLine(), 0, program));
	SmallVector<Value *> args;
	for (auto [number, slot] : enumerate(parameters[&function]))
		args.push_back(slot ? static_cast<Value *>(build.CreateLoad(slot->getAllocatedType(), slot))
				    : made->getArg(number)); // invariant, of the only function
	CallInst *call = build.CreateCall(&function, args);
	call->setAttributes(function.getAttributes());
	call->setTailCall();
	if (!call->getType()->isVoidTy())
		build.CreateStore(call, results[call->getType()]);
	build.CreateBr(leave);
	InlineFunctionInfo info;
	if (!InlineFunction(*call, info).isSuccess())
		lambda::refuse(*call, "recursion of a function that cannot be inlined: " + function.getName());
	for (Instruction &inst : made->getEntryBlock())
		if (auto *local = dyn_cast<AllocaInst>(&inst); local && !before.count(local))
			locals.push_back(local);
}

// restrict holds within one call (C11 6.7.3.1p4). Here all calls share their instructions, and one call may do through a pointer what
// another never does.
void Machine::forgetScopes()
{
	for (Instruction &inst : make_early_inc_range(instructions(made))) {
		inst.setMetadata(LLVMContext::MD_alias_scope, nullptr);
		inst.setMetadata(LLVMContext::MD_noalias, nullptr);
		if (isa<NoAliasScopeDeclInst>(inst))
			inst.eraseFromParent();
	}
}

// Puts each call into a block of its own, so that what is live after it is live in another block.
void Machine::findSites()
{
	SmallVector<CallInst *> calls;
	for (Instruction &inst : instructions(made)) {
		if (auto *local = dyn_cast<AllocaInst>(&inst); local && local->getParent() != &made->getEntryBlock())
			lambda::refuse(*local, "an array of variable length in a recursive function");
		if (auto *call = dyn_cast<CallInst>(&inst); call && group.contains(call->getCalledFunction()))
			calls.push_back(call);
	}
	for (CallInst *call : calls) {
		Function *callee = call->getCalledFunction();
		if (call->getMetadata(tailMark)) {
			makeTail(*call, *callee);
			continue;
		}
		BasicBlock *block = SplitBlock(call->getParent(), call);
		BasicBlock *resume = SplitBlock(block, call->getNextNode());
		sites.push_back({ call, callee, block, resume, {} });
	}
}

void Machine::setParameters(IRBuilder<> &build, CallInst &call, Function &callee)
{
	for (auto [slot, arg] : zip(parameters[&callee], call.args()))
		if (slot)
			build.CreateStore(arg, slot);
}

// The callee takes the caller's frame, and its result is the caller's.
void Machine::makeTail(CallInst &call, Function &callee)
{
	IRBuilder<> build(&call);
	setParameters(build, call, callee);
	SplitBlock(call.getParent(), &call);
	BasicBlock *block = call.getParent()->getSinglePredecessor();
	ReplaceInstWithInst(block->getTerminator(), BranchInst::Create(entries[&callee]));
	call.replaceAllUsesWith(PoisonValue::get(call.getType()));
}

// Computes addresses within locals where they are used, as pointers kept in frames are harder to follow.
void Machine::recompute()
{
	SmallVector<Instruction *> addresses(locals.begin(), locals.end());
	for (unsigned i = 0; i < addresses.size(); i++)
		for (User *user : addresses[i]->users())
			if (isa<GetElementPtrInst>(user))
				addresses.push_back(cast<Instruction>(user));
	for (Instruction *address : reverse(addresses)) {
		if (isa<AllocaInst>(address))
			continue;
		for (Use &use : make_early_inc_range(address->uses())) {
			auto *user = cast<Instruction>(use.getUser());
			if (isa<PHINode>(user))
				continue;
			Instruction *copy = address->clone();
			copy->insertBefore(user);
			use.set(copy);
		}
		if (address->use_empty())
			address->eraseFromParent();
	}
}

// Makes variables of all values that are used outside their block.
void Machine::demote()
{
	SmallVector<PHINode *> phis;
	for (Instruction &inst : instructions(made))
		if (auto *phi = dyn_cast<PHINode>(&inst))
			phis.push_back(phi);
	for (PHINode *phi : phis)
		demoted.push_back(DemotePHIToStack(phi));
	SmallVector<Instruction *> values;
	for (Instruction &inst : instructions(made)) {
		auto outside = [&](User *user) { return cast<Instruction>(user)->getParent() != inst.getParent(); };
		if (!isa<AllocaInst>(inst) && any_of(inst.users(), outside))
			values.push_back(&inst);
	}
	for (Instruction *value : values)
		demoted.push_back(DemoteRegToStack(*value));
	for (Site &site : sites) // uses of the result belong after the return
		site.resume->splice(site.resume->begin(), site.block, std::next(site.call->getIterator()),
				    site.block->getTerminator()->getIterator());
	erase(demoted, nullptr);
	promoted.append(demoted.begin(), demoted.end());
}

// Which variables are live after each call: the classic data-flow iteration, from the last block to the first.
void Machine::findSaved()
{
	DenseMap<AllocaInst *, unsigned> index;
	for (auto [number, slot] : enumerate(demoted))
		index[slot] = number;
	DenseMap<BasicBlock *, BitVector> live;
	for (BasicBlock &block : *made)
		live[&block].resize(demoted.size());
	for (bool changed = true; changed;) {
		changed = false;
		for (BasicBlock &block : reverse(*made)) {
			BitVector now(demoted.size());
			for (BasicBlock *next : successors(&block))
				now |= live[next];
			for (Instruction &inst : reverse(block)) {
				auto *slot = dyn_cast_or_null<AllocaInst>(getLoadStorePointerOperand(&inst));
				auto found = index.find(slot);
				if (found != index.end())
					isa<LoadInst>(inst) ? now.set(found->second) : now.reset(found->second);
			}
			if (now != live[&block]) {
				live[&block] = now;
				changed = true;
			}
		}
	}
	for (Site &site : sites)
		site.saved = live[site.resume];
}

// A frame holds the locals of its function, then what the waiting call needs.
void Machine::layOut()
{
	for (AllocaInst *local : locals) {
		frameSize = alignTo(frameSize, std::max<uint64_t>(local->getAlign().value(), 8));
		localsAt[local] = frameSize;
		frameSize += layout.getTypeAllocSize(local->getAllocatedType()) *
			     cast<ConstantInt>(local->getArraySize())->getZExtValue();
	}
	uint64_t most = 0;
	for (Site &site : sites) {
		uint64_t size = 0;
		for (unsigned i : site.saved.set_bits())
			size += alignTo(layout.getTypeStoreSize(demoted[i]->getAllocatedType()), 8);
		most = std::max(most, size);
	}
	frameSize = alignTo(alignTo(frameSize, 8) + most, framesAlign);
	if (2 * frameSize > framesSize)
		lambda::refuse(made->getEntryBlock().front(), "recursion of " + entered.getName() + " with frames of " +
								      Twine(frameSize) + " bytes: there are " +
								      Twine(framesSize) +
								      " for all, a quarter of limits.memory");
	auto *type = ArrayType::get(Type::getInt8Ty(made->getContext()), framesSize);
	frames = new GlobalVariable(*made->getParent(), type, false, GlobalValue::InternalLinkage,
				    ConstantAggregateZero::get(type), "lambda_frames." + entered.getName());
	frames->setSection(".bss..request"); // one for each CPU
	frames->setAlignment(Align(framesAlign));
}

Value *Machine::inFrame(IRBuilder<> &build, uint64_t offset)
{
	Value *from = build.CreateLoad(build.getInt64Ty(), top);
	return build.CreatePtrAdd(build.CreatePtrAdd(frames, from), build.getInt64(offset));
}

// Whenever a local is used, the running frame is its function's.
void Machine::moveLocals()
{
	for (AllocaInst *local : locals) {
		for (Use &use : make_early_inc_range(local->uses())) {
			auto *user = cast<Instruction>(use.getUser());
			if (auto *intrinsic = dyn_cast<IntrinsicInst>(user);
			    intrinsic && intrinsic->isLifetimeStartOrEnd()) {
				user->eraseFromParent();
				continue;
			}
			IRBuilder<> build(user);
			use.set(inFrame(build, localsAt[local]));
		}
		local->eraseFromParent();
	}
}

// The code after each body: returns from the first frame, or resumes the call that waits in the previous frame.
void Machine::makeReturn()
{
	LLVMContext &context = made->getContext();
	auto *exit = BasicBlock::Create(context, "exit", made), *back = BasicBlock::Create(context, "back", made);
	IRBuilder<> build(leave);
	Value *now = build.CreateLoad(build.getInt64Ty(), top);
	build.CreateCondBr(build.CreateIsNull(now), exit, back);

	build.SetInsertPoint(exit);
	Type *type = made->getReturnType();
	if (type->isVoidTy())
		build.CreateRetVoid();
	else
		build.CreateRet(build.CreateLoad(type, results[type]));

	build.SetInsertPoint(back);
	build.CreateStore(build.CreateSub(now, build.getInt64(frameSize)), top);
	Value *number = build.CreateLoad(build.getInt64Ty(), inFrame(build, 0));
	auto *unknown = BasicBlock::Create(context, "unknown", made);
	SwitchInst *choice = build.CreateSwitch(number, unknown, sites.size());
	for (auto [i, site] : enumerate(sites))
		choice->addCase(build.getInt64(i), site.resume);
	build.SetInsertPoint(unknown);
	lambda::createFault(build, LN_FAULT_BOUNDS);
}

void Machine::lower(Site &site, unsigned number)
{
	CallInst *call = site.call;
	IRBuilder<> save(call), restore(&*site.resume->getFirstInsertionPt());
	setParameters(save, *call, *site.callee);
	save.CreateStore(save.getInt64(number), inFrame(save, 0));
	uint64_t at = frameSize; // locals begin at the other end
	for (unsigned i : site.saved.set_bits()) {
		Type *type = demoted[i]->getAllocatedType();
		at -= alignTo(layout.getTypeStoreSize(type), 8);
		save.CreateStore(save.CreateLoad(type, demoted[i]), inFrame(save, at));
		restore.CreateStore(restore.CreateLoad(type, inFrame(restore, at)), demoted[i]);
	}
	if (!call->getType()->isVoidTy())
		call->replaceAllUsesWith(restore.CreateLoad(call->getType(), results[call->getType()]));

	Value *next = save.CreateAdd(save.CreateLoad(save.getInt64Ty(), top), save.getInt64(frameSize));
	save.CreateStore(next, top);
	auto *tooDeep = BasicBlock::Create(made->getContext(), "deep", made);
	Value *fits = save.CreateICmpULE(next, save.getInt64(framesSize - frameSize));
	save.CreateCondBr(fits, entries[site.callee], tooDeep);
	site.block->getTerminator()->eraseFromParent();
	call->eraseFromParent();
	IRBuilder<> deep(tooDeep);
	lambda::createFault(deep, LN_FAULT_RECURSION);
}

// The groups of functions that call each other, or themselves.
SmallVector<Group> findGroups(Module &module)
{
	SmallVector<Group> groups;
	CallGraph graph(module);
	for (auto scc = scc_begin(&graph); !scc.isAtEnd(); ++scc) {
		if (!scc.hasCycle())
			continue;
		Group group;
		for (CallGraphNode *node : *scc)
			if (Function *function = node->getFunction(); function && !function->isDeclaration())
				group.insert(function);
		if (!group.empty())
			groups.push_back(group);
	}
	return groups;
}

// The calls that enter a group from outside.
SmallVector<CallInst *> callsOf(const Group &group)
{
	SmallVector<CallInst *> calls;
	for (Function *function : group)
		for (User *user : function->users())
			if (auto *call = dyn_cast<CallInst>(user); call && !group.contains(call->getFunction()))
				calls.push_back(call);
	return calls;
}

// The size of frames for each function that enters a group: all get the same share of the memory. The SDK says how much there is. In a fused
// program each member says so, and the largest counts.
uint64_t shareFrames(Module &module, ArrayRef<Group> groups)
{
	SmallVector<GlobalVariable *> said;
	SmallPtrSet<Function *, 4> entered;
	uint64_t all = 0;
	for (GlobalVariable &global : module.globals())
		if (lambda::saysFrames(global))
			said.push_back(&global);
	removeFromUsedLists(module, [](Constant *used) { return lambda::saysFrames(*used); });
	for (GlobalVariable *global : said) {
		if (auto *number = dyn_cast<ConstantInt>(global->getInitializer()))
			all = std::max(all, number->getZExtValue());
		global->replaceAllUsesWith(PoisonValue::get(global->getType()));
		global->eraseFromParent();
	}
	for (const Group &group : groups)
		for (CallInst *call : callsOf(group))
			entered.insert(call->getCalledFunction());
	return std::max(framesMin, alignDown(all / std::max<uint64_t>(entered.size(), 1), framesAlign));
}

// Redirects calls from outside to the new functions, after which the group is unreachable.
SmallVector<Function *> replace(const Group &group, uint64_t framesSize)
{
	DenseMap<Function *, Function *> machines;
	SmallVector<Function *> made;
	for (CallInst *call : callsOf(group)) {
		Function *&machine = machines[call->getCalledFunction()];
		if (!machine) {
			machine = Machine(group, *call->getCalledFunction(), framesSize).make();
			made.push_back(machine);
		}
		call->setCalledFunction(machine);
		call->setAttributes(call->getAttributes().removeFnAttributes(call->getContext()));
	}
	for (Function *function : group)
		function->deleteBody();
	for (Function *function : group)
		if (function->use_empty())
			function->eraseFromParent();
	return made;
}

// Leaves no value undefined: the verifier may see a kernel pointer in its register.
void define(Function &function)
{
	for (BasicBlock &block : function)
		for (PHINode &phi : block.phis())
			for (Use &value : phi.incoming_values())
				if (isa<UndefValue>(value))
					value.set(Constant::getNullValue(phi.getType()));
}

struct Recursion : PassInfoMixin<Recursion> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &manager)
	{
		auto &functions = manager.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
		SmallVector<Group> groups = findGroups(module);
		uint64_t framesSize = shareFrames(module, groups);
		// A loop with a resumed call in it has two entries, and gets a single header again.
		FunctionPassManager reduce;
		reduce.addPass(LowerSwitchPass());
		reduce.addPass(FixIrreduciblePass());
		for (const Group &group : groups) {
			for (Function *function : group)
				functions.clear(*function, function->getName());
			for (Function *made : replace(group, framesSize)) {
				reduce.run(*made, functions);
				define(*made);
			}
		}
		return PreservedAnalyses::none();
	}
};

} // namespace

bool lambda::saysFrames(const Value &value)
{
	auto *global = dyn_cast<GlobalVariable>(&value);
	return global && global->getSection() == "lambda.frames" && global->hasInitializer();
}

// Frames hold addresses that were not stored before, so LLVM's analysis of globals has to run again. It survives every pass that does not
// name it, even one that preserves nothing.
void lambda::addRecursion(ModulePassManager &passes)
{
	passes.addPass(Recursion());
	passes.addPass(RecomputeGlobalsAAPass());
}
