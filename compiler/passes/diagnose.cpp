// SPDX-License-Identifier: Apache-2.0
#include "diagnose.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Function.h"

using namespace llvm;

DILocation *lambda::authorsPlace(DILocation *place)
{
	while (place && place->getFilename().contains("/sdk/") && place->getInlinedAt())
		place = place->getInlinedAt();
	return place;
}

bool lambda::isAuthors(const Instruction &inst)
{
	DILocation *place = authorsPlace(inst.getDebugLoc());

	return place && !place->getFilename().contains("/sdk/");
}

void lambda::refuse(Instruction &at, const Twine &message)
{
	DebugLoc place(authorsPlace(at.getDebugLoc()));
	Function &function = *at.getFunction();

	function.getContext().diagnose(DiagnosticInfoUnsupported(function, message, place));
}

void lambda::refuse(Module &module, DIFile *file, unsigned line, const Twine &message)
{
	LLVMContext &context = module.getContext();
	// LLVM's locations need a function as their scope.
	auto *place = DISubprogram::getDistinct(context, file, "", "", file, line, nullptr, line, nullptr, 0, 0,
						DINode::FlagZero, DISubprogram::SPFlagDefinition, nullptr);

	context.diagnose(DiagnosticInfoUnsupported(*module.begin(), message, DiagnosticLocation(place)));
}

bool lambda::isOfSdk(const DebugLoc &place)
{
	auto *scope = place ? dyn_cast<DIScope>(place.getScope()) : nullptr;

	return scope && scope->getFilename().ends_with("sdk/lambda_bpf.h");
}
