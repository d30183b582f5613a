// SPDX-License-Identifier: Apache-2.0
// Hints: what an author says of how an object is used (sdk/lambda_hints.h). Read-mostly objects get a section, and so a map, of their own:
// a CPU that writes a counter takes its cache line from all other CPUs, with everything else in that line.
#include "passes.h"
#include "provenance.h"
#include "remarks.h"

#include "llvm/IR/DebugInfoMetadata.h"

using namespace llvm;

// A declaration tag is a pair of strings, "btf_decl_tag" and the tag.
static StringRef hintOf(const GlobalVariable &global)
{
	SmallVector<DIGlobalVariableExpression *, 1> described;

	global.getDebugInfo(described);
	DINodeArray tags = described.empty() ? nullptr : described[0]->getVariable()->getAnnotations();
	for (const Metadata *tag : tags ? tags->operands() : ArrayRef<MDOperand>()) {
		auto *text = dyn_cast<MDString>(cast<MDNode>(tag)->getOperand(1));
		StringRef hint = text ? text->getString() : "";
		if (hint.consume_front("memory:"))
			return hint;
	}
	return "";
}

namespace
{

// Reports the hints while all objects are still there.
struct SayHints : PassInfoMixin<SayHints> {
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
	{
		for (GlobalVariable &global : module.globals())
			if (StringRef hint = hintOf(global); !hint.empty())
				lambda::Remark(module, "hint").with("object", global.getName()).with("hint", hint);
		return PreservedAnalyses::all();
	}
};

// Heeds the hints of objects that are not in linear memory.
struct HeedHints : PassInfoMixin<HeedHints> {
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);
};

} // namespace

PreservedAnalyses HeedHints::run(Module &module, ModuleAnalysisManager &)
{
	SmallVector<GlobalVariable *> apart;
	bool zero = true;

	for (GlobalVariable &global : module.globals()) {
		if (hintOf(global) != "read_mostly" || global.hasSection() || global.isConstant() ||
		    !global.hasInitializer() || lambda::isNative(global))
			continue;
		apart.push_back(&global);
		zero &= global.getInitializer()->isNullValue();
	}
	for (GlobalVariable *global : apart) {
		// Zeros take no room in a section whose name begins with .bss; the loader finds both as .data.read_mostly.
		global->setSection(zero ? ".bss..read_mostly" : ".data.read_mostly");
		lambda::Remark(module, "hint").with("object", global->getName()).with("state", "heeded");
	}
	return PreservedAnalyses::all();
}

void lambda::addSayHints(ModulePassManager &passes)
{
	passes.addPass(SayHints());
}

void lambda::addHeedHints(ModulePassManager &passes)
{
	passes.addPass(HeedHints());
}
