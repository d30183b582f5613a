// SPDX-License-Identifier: Apache-2.0
// Members: several lambdas in one program. Before a member is linked to the others, its names get a prefix. What all members have of the
// SDK becomes one.
#include "coalesce.h"
#include "program.h"

#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

// LAMBDA_KEPT in sdk/lambda.h.
static constexpr StringLiteral keptSection = ".bss..keep";

// The maps that all members share: the hand-over of the request, and scratch memory.
static bool isCommon(const GlobalVariable &variable)
{
	return variable.getSection() == ".maps" &&
	       (variable.getName() == "ln_requests" || variable.getName() == "lambda_workspaces");
}

// Makes a function internal. One that was visible to others is inlined: it still is in the types that the kernel reads, which would make
// the kernel verify it on its own.
static void makeInternal(Function &function)
{
	if (function.hasLocalLinkage())
		return;
	function.setLinkage(GlobalValue::InternalLinkage);
	if (!function.hasFnAttribute(Attribute::NoInline))
		function.addFnAttr(Attribute::AlwaysInline);
}

// Variables stay as visible as they were: others may read kept objects. Each member's kept objects have their own map, as they have without
// fusion, so that fused and separate revisions can take them over from each other.
static void rename(GlobalObject &object, StringRef member)
{
	object.setName(member + "__" + object.getName());
	if (object.getSection() == keptSection)
		object.setSection((keptSection + ("_" + member)).str());
	if (auto *function = dyn_cast<Function>(&object))
		makeInternal(*function);
}

static void renameEntry(Function &entry, StringRef member)
{
	entry.setName(lambda::memberPrefix + member);
	entry.setSection("");
	entry.removeFnAttr(Attribute::NoInline);
}

PreservedAnalyses lambda::MemberPass::run(Module &module, ModuleAnalysisManager &)
{
	removeFromUsedLists(module, [](Constant *used) { return !lambda::saysFrames(*used); });
	if (GlobalVariable *license = module.getNamedGlobal("LICENSE"))
		license->eraseFromParent();
	for (GlobalVariable &variable : module.globals()) {
		if (isCommon(variable))
			variable.setLinkage(GlobalValue::WeakODRLinkage);
		else if (!variable.isDeclaration() && variable.hasName() && !variable.getName().starts_with("llvm."))
			rename(variable, member);
	}
	for (Function &function : module) {
		if (function.isDeclaration())
			continue;
		if (function.getName() == "lambda" || function.getName() == "lambda_member")
			renameEntry(function, member);
		else
			rename(function, member);
	}
	return PreservedAnalyses::none();
}

PreservedAnalyses lambda::FusePass::run(Module &module, ModuleAnalysisManager &)
{
	for (GlobalVariable &variable : module.globals())
		if (isCommon(variable))
			variable.setLinkage(GlobalValue::ExternalLinkage);
	for (Function &function : module)
		if (!function.isDeclaration() && function.getName().starts_with(memberPrefix))
			makeInternal(function);
	if (stratify)
		module.getOrInsertNamedMetadata(stratifyName);
	return PreservedAnalyses::none();
}
