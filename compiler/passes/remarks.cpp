// SPDX-License-Identifier: Apache-2.0
#include "remarks.h"
#include "diagnose.h"
#include "passes.h"

#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace lambda;

static const char section[] = ".lambda.report";
static const char metadata[] = "lambda.remarks"; // holds the lines until the last pass
static const char nameMark[] = "lambda.name"; // holds the debug variable of an alloca

Remark::Remark(Module &module, StringRef kind)
    : module(module), wanted(StringRef(module.getModuleInlineAsm()).contains(section))
{
	with("kind", kind);
}

bool lambda::hasFileAssembly(const Module &module)
{
	SmallVector<StringRef> lines;

	StringRef(module.getModuleInlineAsm()).split(lines, '\n', -1, false);
	return any_of(lines, [](StringRef line) {
		return line != (Twine(".pushsection ") + section + ",\"\",@progbits").str() && line != ".popsection";
	});
}

Remark &Remark::with(StringRef key, json::Value value)
{
	if (wanted)
		fields[key] = std::move(value);
	return *this;
}

Remark &Remark::at(const DebugLoc &place)
{
	if (const DILocation *line = wanted ? authorsPlace(place.get()) : nullptr) {
		with("file", sys::path::filename(line->getFilename()));
		with("line", line->getLine());
	}
	return *this;
}

Remark::~Remark()
{
	std::string text;
	raw_string_ostream out(text);

	if (!wanted)
		return;
	out << json::Value(std::move(fields));
	module.getOrInsertNamedMetadata(metadata)->addOperand(
		MDNode::get(module.getContext(), MDString::get(module.getContext(), text)));
}

namespace
{

class StepPass : public PassInfoMixin<StepPass>
{
      public:
	explicit StepPass(StringRef step) : step(step)
	{
	}
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);

      private:
	StringRef step;
};

class WriteRemarksPass : public PassInfoMixin<WriteRemarksPass>
{
      public:
	PreservedAnalyses run(Module &, ModuleAnalysisManager &);
};

} // namespace

PreservedAnalyses StepPass::run(Module &module, ModuleAnalysisManager &)
{
	unsigned count = 0;

	for (Function &function : module)
		for (Instruction &inst : instructions(function))
			count += !isa<DbgInfoIntrinsic>(inst) && !inst.isLifetimeStartOrEnd();
	Remark(module, "step").with("step", step).with("instructions", count);
	return PreservedAnalyses::all();
}

PreservedAnalyses WriteRemarksPass::run(Module &module, ModuleAnalysisManager &)
{
	NamedMDNode *remarks = module.getNamedMetadata(metadata);
	std::string text;
	raw_string_ostream out(text);

	if (!remarks)
		return PreservedAnalyses::all();
	out << ".pushsection " << section << ",\"\",@progbits\n";
	for (MDNode *remark : remarks->operands()) {
		for (unsigned char byte : cast<MDString>(remark->getOperand(0))->getString())
			out << ".byte " << unsigned(byte) << '\n';
		out << ".byte 10\n";
	}
	out << ".popsection\n";
	module.appendModuleInlineAsm(text);
	remarks->eraseFromParent();
	return PreservedAnalyses::all();
}

void lambda::addStep(ModulePassManager &passes, StringRef name)
{
	passes.addPass(StepPass(name));
}

void lambda::addRemarks(ModulePassManager &passes)
{
	passes.addPass(WriteRemarksPass());
}

static void remarkGlobal(Module &module, GlobalVariable &global, const Provenance &provenance, const Layout &layout)
{
	Remark remark(module, "object");
	auto escaped = provenance.escaped().find(&global);
	SmallVector<DIGlobalVariableExpression *, 1> lines;

	remark.with("object", global.getName()).with("size", sizeOf(&global, module.getDataLayout()));
	global.getDebugInfo(lines);
	if (!lines.empty()) {
		remark.with("file", sys::path::filename(lines[0]->getVariable()->getFilename()));
		remark.with("line", lines[0]->getVariable()->getLine());
	}
	if (layout.isOwn(&global))
		remark.with("where", "linear").with("why", "it is one request's");
	else if (layout.has(&global))
		remark.with("where", "shared")
			.with("state", global.isConstant() ? "constant" : "written")
			.with("why", escaped != provenance.escaped().end() && escaped->second
					     ? "its address is stored, or mixed with others"
					     : "its address stands in an initializer");
	else if (global.isConstant())
		remark.with("where", "rodata").with("why", "it is constant");
	else
		remark.with("where", "object").with("why", "it is used by its name and an index");
}

void lambda::nameVariable(AllocaInst &local)
{
	auto name = [&](DbgVariableRecord *record) { local.setMetadata(nameMark, record->getVariable()); };

	for_each(at::getDVRAssignmentMarkers(&local), name); // in optimised code
	for_each(findDVRDeclares(&local), name);
}

static void remarkLocal(Module &module, AllocaInst &local, const Provenance &provenance, const Layout &layout)
{
	Remark remark(module, "object");
	bool escapes = provenance.escaped().count(&local);

	remark.with("object", "local").with("size", sizeOf(&local, module.getDataLayout()));
	if (auto *name = cast_or_null<DILocalVariable>(local.getMetadata(nameMark)))
		remark.with("object", name->getName())
			.at(DILocation::get(module.getContext(), name->getLine(), 0, name->getScope()));
	if (!layout.has(&local))
		remark.with("where", "stack").with("why", "it is small and used at constant places");
	else
		remark.with("where", "linear")
			.with("why", escapes ? "its address is stored, or mixed with others"
					     : "it is large, or has a variable index");
}

void lambda::remarkVariables(Module &module, const Provenance &provenance, const Layout &layout)
{
	for (GlobalVariable &global : module.globals())
		if (!isNative(global) && global.hasInitializer() && !global.getName().starts_with("llvm."))
			remarkGlobal(module, global, provenance, layout);
	for (Function &function : module)
		for (Instruction &inst : instructions(function))
			if (auto *local = dyn_cast<AllocaInst>(&inst))
				remarkLocal(module, *local, provenance, layout);
}
