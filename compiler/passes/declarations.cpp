// SPDX-License-Identifier: Apache-2.0
// An object file tells its loader more than its instructions: by sections, by functions that run before or after the program, by assembly
// that no pass sees. A lambda that declares such things is refused at their lines.
#include "diagnose.h"
#include "passes.h"
#include "remarks.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfo.h"

using namespace llvm;

namespace
{

bool isMap(const GlobalVariable &global)
{
	auto *members = dyn_cast<StructType>(global.getValueType());

	return members && all_of(members->elements(), [](Type *type) { return type->isPointerTy(); });
}

std::string whyNot(const GlobalVariable &global)
{
	StringRef section = global.getSection(), name = global.getName();

	if (section.empty() || (section == ".maps" && isMap(global)))
		return "";
	if (global.isDeclaration() && (section == ".kconfig" || section == ".ksyms"))
		return (name + " is not the lambda's, but the kernel's: leave it out").str();
	if (section == ".maps")
		return (name + " is not a map: leave " + section + " out, or declare it with __uint and __type").str();
	if (section == ".data.fuel" || section == ".bss..fuel" ||
	    none_of(ArrayRef<StringRef>{ ".data", ".bss", ".rodata" },
		    [=](StringRef prefix) { return section == prefix || section.starts_with((prefix + ".").str()); }))
		return (name + " is in the section " + section +
			", which is not for objects of a lambda: leave the section out")
			.str();
	return "";
}

void checkVariable(Module &module, GlobalVariable &global)
{
	std::string why = whyNot(global);
	SmallVector<DIGlobalVariableExpression *, 1> lines;

	global.getDebugInfo(lines);
	if (why.empty() || lines.empty())
		return;
	DIGlobalVariable *at = lines[0]->getVariable();
	StringRef file = at->getFilename();
	if (!file.contains("/sdk/") && file != "/unit.c") // where the SDK's variables are in members of a fused program
		lambda::refuse(module, at->getFile(), at->getLine(), why);
}

void refuseFunction(Function &function, const Twine &message)
{
	if (DISubprogram *at = function.getSubprogram())
		lambda::refuse(*function.getParent(), at->getFile(), at->getLine(), message);
}

// Refuses the functions in llvm.global_ctors or llvm.global_dtors, and removes the list.
void checkStarters(Module &module, StringRef list, StringRef what)
{
	GlobalVariable *global = module.getNamedGlobal(list);

	if (!global)
		return;
	if (auto *entries = dyn_cast<ConstantArray>(global->getInitializer()))
		for (Use &entry : entries->operands())
			if (auto *function =
				    dyn_cast<Function>(cast<Constant>(entry)->getOperand(1)->stripPointerCasts()))
				refuseFunction(*function,
					       "a " + what + ", which nobody would call: call it from the entry");
	global->eraseFromParent();
}

struct Declarations : PassInfoMixin<Declarations> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		for (GlobalVariable &global : module.globals())
			checkVariable(module, global);
		for (Function &function : module)
			if (function.hasFnAttribute(Attribute::Naked))
				refuseFunction(function, "a naked function: leave the attribute out");
		checkStarters(module, "llvm.global_ctors", "constructor");
		checkStarters(module, "llvm.global_dtors", "destructor");
		// The line of these is not known here. compiler/declarations.go finds it.
		if (lambda::hasFileAssembly(module))
			module.getContext().emitError("assembly outside of functions");
		if (!module.alias_empty() || !module.ifunc_empty())
			module.getContext().emitError("another name of a function or an object");
		return PreservedAnalyses::none();
	}
};

} // namespace

void lambda::addDeclarations(ModulePassManager &passes)
{
	passes.addPass(Declarations());
}
