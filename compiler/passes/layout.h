// SPDX-License-Identifier: Apache-2.0
// Linear memory: one map for all variables whose address a program keeps. As in WebAssembly, a pointer is an offset in it, so that a
// forged pointer reaches nothing else.
//
//	[guard: offset 0 is NULL] [shared variables] [CPU 0's copy] [CPU 1's copy] ... [spare room]
//
// A variable here is a global or an alloca. The number of copies is known at load time (percpu.h).
#ifndef LAMBDA_LAYOUT_H
#define LAMBDA_LAYOUT_H

#include "provenance.h"

#include "llvm/IR/Instructions.h"

namespace lambda
{

enum : uint64_t {
	GuardBytes = 64,
	SpareBytes = 2048, // behind what __lambda_resolve() gives, for helpers that are given a constant length
};

class Layout
{
      public:
	Layout(llvm::Module &, const Provenance &);

	// Whether anything lies in linear memory.
	bool empty() const
	{
		return shared.empty() && own.empty() && !forged;
	}

	// Whether a variable is per CPU.
	bool isOwn(llvm::Value *variable) const
	{
		return own.count(variable);
	}

	// The offset of a variable: in the map or, if it is per CPU, in a CPU's copy.
	uint64_t at(llvm::Value *variable) const
	{
		auto found = own.find(variable);
		return found != own.end() ? found->second : shared.find(variable)->second;
	}

	bool has(llvm::Value *variable) const
	{
		return own.count(variable) || shared.count(variable);
	}

	uint64_t firstCopy() const
	{
		return copiesAt;
	}

	uint64_t copySize() const
	{
		return stride;
	}

	// The end of what pointers may reach if there is one copy. Each further copy adds copySize().
	uint64_t size() const
	{
		return copiesAt + stride;
	}

	// The map, which the first call makes.
	llvm::GlobalVariable *memory();

	// Replaces addresses of variables in linear memory by their offsets, in all initializers.
	void rewriteInitializers();

	// Reports variables that have to stay where they are, but whose address escapes.
	void report(const Provenance &) const;

	// Removes the globals that are now in linear memory.
	void removeMoved();

	// The variables that begin anew with each request: their first word is set to zero.
	llvm::ArrayRef<llvm::GlobalVariable *> requestVariables() const
	{
		return ofRequest;
	}

      private:
	uint64_t place(llvm::MapVector<llvm::Value *, uint64_t> &, llvm::Value *variable, uint64_t at);
	llvm::Constant *rewrite(llvm::Constant *);

	llvm::Module &module;
	llvm::GlobalVariable *map = nullptr;
	llvm::MapVector<llvm::Value *, uint64_t> shared; // globals
	// Globals and locals. Rewriting a function may have removed its locals, so the keys are only compared.
	llvm::MapVector<llvm::Value *, uint64_t> own;
	llvm::SmallVector<llvm::GlobalVariable *, 2> ofRequest;
	uint64_t copiesAt = GuardBytes, stride = 0;
	llvm::Align strictest{ 64 }; // of all variables, and at least a cache line
	bool forged = false; // a pointer that is not known to point into a variable is dereferenced
};

// Whether every use of an alloca is a load or store at a constant offset, so that it can stay on the program's stack.
bool staysOnStack(const llvm::AllocaInst &);

uint64_t sizeOf(const llvm::Value *variable, const llvm::DataLayout &);

} // namespace lambda

#endif
