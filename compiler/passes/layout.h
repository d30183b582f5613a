// SPDX-License-Identifier: Apache-2.0
// Linear memory: one map in which everything lies whose address a program keeps. As in WebAssembly, a pointer is an offset in it,
// so that a forged one reaches nothing else.
//
//	[guard: offset 0 is NULL] [shared objects] [CPU 0's objects] [CPU 1's objects] ... [spare room]
//
// How many CPUs it has objects of is known when it is loaded (percpu.h).
#ifndef LAMBDA_LAYOUT_H
#define LAMBDA_LAYOUT_H

#include "provenance.h"

#include "llvm/IR/Instructions.h"

namespace lambda
{

enum : uint64_t {
	GuardBytes = 64,
	SpareBytes = 2048, // behind what __lambda_resolve() gives, for helpers that are told a constant length
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

	// Whether an object is one of each CPU's own.
	bool isOwn(llvm::Value *variable) const
	{
		return own.count(variable);
	}

	// Where an object lies: in the map, or where it is a CPU's own in that CPU's part.
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

	// Where pointers may point at most, exclusive, if there is one part. Each further one adds copySize().
	uint64_t size() const
	{
		return copiesAt + stride;
	}

	// The map. It is made when it is first asked for.
	llvm::GlobalVariable *memory();

	// Replaces addresses of objects in linear memory by their offsets, in all initializers.
	void rewriteInitializers();

	// Tells the author of objects that have to stay where they are, and whose address escapes nevertheless.
	void report(const Provenance &) const;

	// Removes the globals that are in linear memory now.
	void removeMoved();

	// The objects that begin anew with each request: their first word is set to zero.
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
	// Globals and locals; what is rewritten of a function may have removed its locals, so that the keys are only compared.
	llvm::MapVector<llvm::Value *, uint64_t> own;
	llvm::SmallVector<llvm::GlobalVariable *, 2> ofRequest; // those globals
	uint64_t copiesAt = GuardBytes, stride = 0;
	llvm::Align strictest{ 64 }; // of all objects, and at least a cache line
	bool forged = false; // pointers without objects are followed
};

// Whether every use of an alloca is a load or store at a constant place, so that it can stay on the program's stack.
bool staysOnStack(const llvm::AllocaInst &);

uint64_t sizeOf(const llvm::Value *variable, const llvm::DataLayout &);

} // namespace lambda

#endif
