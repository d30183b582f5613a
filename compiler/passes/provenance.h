// SPDX-License-Identifier: Apache-2.0
// Where pointers come from: what each pointer of a program may point into.
#ifndef LAMBDA_PROVENANCE_H
#define LAMBDA_PROVENANCE_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace lambda
{

// What a pointer points into. A Variable is a global or an alloca whose address is stored nowhere, so that an offset is enough for a
// pointer into it. Linear memory holds all other variables. Native memory is the kernel's: packet, context, map values.
struct Place {
	enum Kind { Unknown, Null, Native, Variable, Linear } kind = Unknown;
	llvm::Value *variable = nullptr;

	bool operator==(const Place &other) const
	{
		return kind == other.kind && variable == other.variable;
	}
	bool operator!=(const Place &other) const
	{
		return !(*this == other);
	}
	bool isNumber() const
	{
		return kind == Variable || kind == Linear || kind == Null;
	}
};

class Provenance
{
      public:
	// Analyses all functions of a module together. Conflicts are kept for report().
	explicit Provenance(llvm::Module &);

	Place of(llvm::Value *) const;

	// The variables whose address escapes, which live in linear memory, each with the instruction that lets it escape, if there is one.
	const llvm::MapVector<llvm::Value *, llvm::Instruction *> &escaped() const
	{
		return escapes;
	}

	// Reports pointers that mix the kernel's memory with a lambda's own.
	void report() const;

      private:
	void iterate(llvm::Module &);
	Place transfer(llvm::Instruction &);
	Place meet(Place, Place, llvm::Instruction &);
	Place escaped(Place, llvm::Instruction *by);
	void escape(llvm::Value *pointer, llvm::Instruction *by);
	void findEscapes(llvm::Instruction &);
	void findEscapesInCall(llvm::CallBase &);
	void escapeInitializers(llvm::Module &);

	llvm::DenseMap<llvm::Value *, Place> places;
	llvm::MapVector<llvm::Value *, llvm::Instruction *> escapes;
	llvm::MapVector<llvm::Instruction *, const char *> conflicts;
};

// A map, or any other memory that is not the lambda's own.
bool isNative(const llvm::GlobalVariable &);

// Whether a call is of a kernel helper, which is called by number.
bool isHelper(const llvm::CallBase &);

// The empty assembly by which the SDK hides a value's history: lambda_opaque().
bool isOpaque(const llvm::Value *);

// The result of __builtin_align_down() and _up(): an address with some low bits cleared.
bool isMasked(const llvm::Value &);

// void *__lambda_resolve(const void *, uint32_t len, uint32_t max) of the SDK.
bool isResolve(const llvm::CallBase &);

} // namespace lambda

#endif
