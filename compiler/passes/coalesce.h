// SPDX-License-Identifier: Apache-2.0
// Lambda coalescing (λ-NIC, section 5.1): several lambdas in one program, with one copy of what they have in common.
#ifndef LAMBDA_COALESCE_H
#define LAMBDA_COALESCE_H

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"

namespace lambda
{

// The function of a member that the fused program calls.
constexpr char memberPrefix[] = "lambda_member_";

// Marks a module in which each request looks each of its maps up once.
constexpr char stratifyName[] = "lambda.stratify";

// Makes a module a member, before it is linked to others.
struct MemberPass : llvm::PassInfoMixin<MemberPass> {
	explicit MemberPass(llvm::StringRef member) : member(member)
	{
	}
	llvm::PreservedAnalyses run(llvm::Module &, llvm::ModuleAnalysisManager &);
	std::string member;
};

// Makes one program of the modules that were linked.
struct FusePass : llvm::PassInfoMixin<FusePass> {
	explicit FusePass(bool stratify) : stratify(stratify)
	{
	}
	llvm::PreservedAnalyses run(llvm::Module &, llvm::ModuleAnalysisManager &);
	bool stratify;
};

// Merges functions that differ only in constants into one with parameters.
struct CoalescePass : llvm::PassInfoMixin<CoalescePass> {
	llvm::PreservedAnalyses run(llvm::Module &, llvm::ModuleAnalysisManager &);
};

// Decides what is inlined, and what several members share.
struct SharePass : llvm::PassInfoMixin<SharePass> {
	explicit SharePass(bool share) : share(share)
	{
	}
	bool share;
	llvm::PreservedAnalyses run(llvm::Module &, llvm::ModuleAnalysisManager &);
};

// Looks each map of one element up once in marked modules.
struct LookupsPass : llvm::PassInfoMixin<LookupsPass> {
	llvm::PreservedAnalyses run(llvm::Module &, llvm::ModuleAnalysisManager &);
};

void addCoalescing(llvm::PassBuilder &);

} // namespace lambda

#endif
