// SPDX-License-Identifier: Apache-2.0
// What the passes report of their work, for `lambdanic build --report`: JSON, one object per line, in the section .lambda.report of the
// object file. compiler/report describes each kind of remark.
#ifndef LAMBDA_REMARKS_H
#define LAMBDA_REMARKS_H

#include "layout.h"

#include "llvm/Support/JSON.h"

namespace lambda
{

class Remark
{
      public:
	Remark(llvm::Module &, llvm::StringRef kind);
	~Remark();
	Remark(const Remark &) = delete;
	Remark &operator=(const Remark &) = delete;

	Remark &with(llvm::StringRef key, llvm::json::Value value);
	Remark &at(const llvm::DebugLoc &); // the author's line

      private:
	llvm::Module &module;
	bool wanted; // the unit names the section
	llvm::json::Object fields;
};

// Whether a module holds assembly outside of functions, besides the one that asks for remarks.
bool hasFileAssembly(const llvm::Module &);

// Keeps the author's name of a local variable before it is forgotten (variables.cpp).
void nameVariable(llvm::AllocaInst &);

// Says where each variable of a module is.
void remarkVariables(llvm::Module &, const Provenance &, const Layout &);

} // namespace lambda

#endif
