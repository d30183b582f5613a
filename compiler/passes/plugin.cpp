// SPDX-License-Identifier: Apache-2.0
// The plugin's entry: puts our passes behind LLVM's own, where the author's code has its optimised form, but for the one that looks
// at it as it was written.
#include "coalesce.h"
#include "passes.h"

#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"

using namespace llvm;

static void addAll(ModulePassManager &passes)
{
	lambda::addStep(passes, "begin");
	lambda::addUnsupported(passes);
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
	lambda::addStep(passes, "memory");
	lambda::addMetering(passes);
	lambda::addPressure(passes);
	lambda::addStep(passes, "metering");
	lambda::addBuiltins(passes);
	lambda::addUndefined(passes);
	lambda::addVariables(passes);
	lambda::addRemarks(passes);
}

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo()
{
	return { LLVM_PLUGIN_API_VERSION, "lambda", "1", [](PassBuilder &builder) {
			builder.registerPipelineStartEPCallback([](ModulePassManager &passes, OptimizationLevel) {
				lambda::addLongDouble(passes);
				lambda::addDeclarations(passes);
			});
			builder.registerOptimizerLastEPCallback(
				[](ModulePassManager &passes, OptimizationLevel) { addAll(passes); });
			lambda::addCoalescing(builder);
		} };
}
