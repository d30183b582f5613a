// SPDX-License-Identifier: Apache-2.0
// The plugin's entry: puts our passes behind LLVM's own, where the author's code is optimised, except those that look at the code as it
// was written. For the host, updates of shared variables are made atomic, and nothing else is changed.
#include "coalesce.h"
#include "passes.h"

#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace
{

// Runs passes on what is compiled for the NIC.
class ForNic : public PassInfoMixin<ForNic>
{
      public:
	explicit ForNic(void (*add)(ModulePassManager &)) : add(add)
	{
	}
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses)
	{
		ModulePassManager passes;

		if (!Triple(module.getTargetTriple()).isBPF())
			return PreservedAnalyses::all();
		add(passes);
		return passes.run(module, analyses);
	}

      private:
	void (*add)(ModulePassManager &);
};

} // namespace

static void addFirst(ModulePassManager &passes)
{
	lambda::addLongDouble(passes);
	lambda::addDeclarations(passes);
	lambda::addVarying(passes);
}

static void addLast(ModulePassManager &passes)
{
	lambda::addStep(passes, "begin");
	lambda::addVariables(passes);
	lambda::addHeaders(passes);
	lambda::addSayHints(passes);
	lambda::addUnsupported(passes);
	lambda::addOrdered(passes);
	lambda::addCalls(passes);
	lambda::addRecursion(passes);
	lambda::addInline(passes);
	lambda::addFaults(passes);
	lambda::addStep(passes, "calls");
	lambda::addSoftFloat(passes);
	lambda::addStep(passes, "float");
	lambda::addArithmetic(passes);
	lambda::addStep(passes, "arithmetic");
	lambda::addMemory(passes);
	lambda::addHeedHints(passes);
	lambda::addStep(passes, "memory");
	lambda::addMetering(passes);
	lambda::addPressure(passes);
	lambda::addStep(passes, "metering");
	lambda::addBuiltins(passes);
	lambda::addUndefined(passes);
	lambda::addRemarks(passes);
}

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo()
{
	return { LLVM_PLUGIN_API_VERSION, "lambda", "1", [](PassBuilder &builder) {
			builder.registerPipelineStartEPCallback([](ModulePassManager &passes, OptimizationLevel) {
				passes.addPass(ForNic(addFirst));
				lambda::addAtomics(passes);
			});
			builder.registerPipelineEarlySimplificationEPCallback(
				[](ModulePassManager &passes, OptimizationLevel) { lambda::addMarkedAtomics(passes); });
			builder.registerOptimizerEarlyEPCallback(
				[](ModulePassManager &passes, OptimizationLevel) { lambda::addCheckMarks(passes); });
			builder.registerPeepholeEPCallback([](FunctionPassManager &passes, OptimizationLevel) {
				lambda::addLocalAtomics(passes);
			});
			builder.registerOptimizerLastEPCallback(
				[](ModulePassManager &passes, OptimizationLevel) { passes.addPass(ForNic(addLast)); });
			lambda::addCoalescing(builder);
		} };
}
