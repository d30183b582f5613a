// SPDX-License-Identifier: Apache-2.0
// The passes that make ordinary C load into the kernel, in the order in which plugin.cpp runs them.
#ifndef LAMBDA_PASSES_H
#define LAMBDA_PASSES_H

#include "llvm/IR/PassManager.h"

namespace lambda
{

// What an object would say to its loader, and lambdas may not, is refused before LLVM's own passes.
void addDeclarations(llvm::ModulePassManager &);

// Arrays of variable length go where a program has room for them, before LLVM takes their stack for one.
void addVarying(llvm::ModulePassManager &);

// On an object that several CPUs have in common, what is read, changed and written back in one expression becomes an atomic
// operation, and what the author marks does or is refused. For the host, too.
void addAtomics(llvm::ModulePassManager &); // at the pipeline's begin
void addMarkedAtomics(llvm::ModulePassManager &); // once local variables are in registers
void addCheckMarks(llvm::ModulePassManager &); // once functions are inlined
void addLocalAtomics(llvm::FunctionPassManager &); // are none again, between LLVM's passes

// Each adds one stage to the end of the module's pipeline, with what LLVM has to clean up behind it.

void addLongDouble(llvm::ModulePassManager &); // is refused, at the pipeline's begin
void addVariables(llvm::ModulePassManager &); // where local variables are is forgotten
void addUnsupported(llvm::ModulePassManager &); // what BPF cannot have is refused
void addCalls(llvm::ModulePassManager &); // indirect calls become switches
void addOrdered(llvm::ModulePassManager &); // loads, stores and fences that order others become operations that do
void addRecursion(llvm::ModulePassManager &); // recursion becomes iteration
void addInline(llvm::ModulePassManager &); // what loops or touches memory becomes part of the entry
void addFaults(llvm::ModulePassManager &); // faults in the depth of calls become the program's result
void addSoftFloat(llvm::ModulePassManager &); // float and double become integers
void addArithmetic(llvm::ModulePassManager &); // what BPF lacks becomes what it has
void addMemory(llvm::ModulePassManager &); // pointers become offsets, accesses are guarded
void addMetering(llvm::ModulePassManager &); // loops end within their budget
void addPressure(llvm::ModulePassManager &); // what the stack has no room for goes to memory

void addBuiltins(llvm::ModulePassManager &); // comparisons of a few bytes become loads
void addUndefined(llvm::ModulePassManager &); // values that C leaves undefined become zero
void forgetVariables(llvm::Module &); // what addVariables() does, for what comes later
void linkRuntime(llvm::Module &); // what the passes called of soft_float_runtime.c
bool isOfRuntime(const llvm::Function &); // one of these, which a header of the SDK calls by itself
void addSayHints(llvm::ModulePassManager &); // what authors say of how objects are used
void addHeedHints(llvm::ModulePassManager &); // what is read mostly goes to a map of its own
void addHeaders(llvm::ModulePassManager &); // says what is read of packets and written to them
void addStep(llvm::ModulePassManager &, llvm::StringRef name); // counts instructions, for the report
void addRemarks(llvm::ModulePassManager &); // writes what the passes had to say

} // namespace lambda

#endif
