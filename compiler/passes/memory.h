// SPDX-License-Identifier: Apache-2.0
// How the memory pass rewrites one function.
#ifndef LAMBDA_MEMORY_H
#define LAMBDA_MEMORY_H

#include "layout.h"
#include "provenance.h"
#include "ranges.h"

#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"

namespace lambda
{

// A pointer as a number: root + offset, from the beginning of a variable or of linear memory. A missing root counts as zero.
struct Number {
	llvm::Value *root = nullptr;
	int64_t offset = 0;
};

// Gives each of a function's pointers its number, except pointers to the kernel's memory.
class Numbers
{
      public:
	Numbers(llvm::Function &, const Provenance &, Layout &);

	// The number of a pointer. The number of NULL depends on what it is compared or mixed with.
	Number of(llvm::Value *pointer, Place as);
	llvm::Value *value(llvm::Value *pointer, Place as, llvm::IRBuilder<> &);

	// Where the running CPU's copy in linear memory begins.
	llvm::Value *ownCopy();

	// Gives the phis of numbers their operands, once all are known.
	void finish();

      private:
	Number compute(llvm::Instruction &, Place);
	Number ofGep(llvm::GetElementPtrInst &, Place);
	Number ofVariable(llvm::Value *variable, Place);

	llvm::Function &function;
	const Provenance &provenance;
	Layout &layout;
	llvm::DenseMap<llvm::Value *, Number> known;
	llvm::SmallVector<std::pair<llvm::PHINode *, llvm::PHINode *>, 16> pending;
	llvm::Value *copyOffset = nullptr;
};

// An operand of an instruction that is the address of bytes that it reads or writes.
struct Access {
	llvm::Instruction *inst;
	unsigned operand;
	uint64_t size;
	Place place;
	Number number;
};

// Lists the accesses of an instruction.
llvm::SmallVector<Access, 2> accessesOf(llvm::Instruction &, const Provenance &);

// Puts guards before accesses that are not provably in bounds, and gives each access the address that the kernel sees.
class Guards
{
      public:
	Guards(llvm::Function &, Layout &, Numbers &, llvm::DominatorTree &, VerifiedRanges);

	void add(const Access &);
	void emit();

	// Ends the request before an instruction if a condition holds.
	void faultIf(llvm::Value *wrong, llvm::Instruction *before);
	llvm::Value *aligned(const Access &, llvm::Value *number, int64_t distance);

	// How many bytes a pointer may range over, from where its offsets count, with any number of copies.
	uint64_t room(Place) const;

	// As room(), with the actual number of copies, minus less.
	llvm::Value *limit(llvm::IRBuilder<> &, Place, uint64_t less) const;

      private:
	// One comparison for all accesses at constant distances from a root: lo to hi, counted from the root.
	struct Guard {
		Place place;
		llvm::Value *root;
		int64_t lo, hi;
		llvm::BasicBlock *block;
		llvm::SmallVector<Access, 4> accesses;
	};

	bool proven(const Access &);
	Guard *find(const Access &);
	llvm::BasicBlock *makeOutside();
	std::string whyOf(const Guard &) const; // for the report
	void emit(Guard &);
	void place(const Access &, llvm::Value *at, int64_t distance);

	llvm::Function &function;
	Layout &layout;
	Numbers &numbers;
	llvm::DominatorTree &tree;
	VerifiedRanges ranges;
	llvm::SmallVector<std::unique_ptr<Guard>, 32> guards;
	llvm::SmallVector<Access, 16> direct;
	llvm::BasicBlock *faultBlock = nullptr;
};

// Turns memcpy, memmove and memset, which BPF lacks, into loops, except short ones of constant length.
void expandMemoryIntrinsics(llvm::Function &);

// Hides a value's history from LLVM, so that the value that was compared is the one that is added to the address.
llvm::Value *makeOpaque(llvm::IRBuilder<> &, llvm::Value *);

// The block that ends a request with the error "lambda fault": a LN_FAULT_* of verdicts.h.
llvm::BasicBlock *makeFault(llvm::Function &, unsigned fault);

} // namespace lambda

#endif
