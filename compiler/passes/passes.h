// SPDX-License-Identifier: Apache-2.0
// The passes that make ordinary C load into the kernel, in the order in which plugin.cpp runs them.
#ifndef LAMBDA_PASSES_H
#define LAMBDA_PASSES_H

#include "llvm/IR/PassManager.h"

namespace lambda
{

// Refuses, before LLVM's own passes, declarations that would tell the loader what lambdas may not.
void addDeclarations(llvm::ModulePassManager &);

// Moves arrays of variable length off the stack, before LLVM's own passes.
void addVarying(llvm::ModulePassManager &);

// An update of a variable that several CPUs share becomes an atomic operation if it is one expression. In variables that the author marked,
// each update becomes one or is refused. For the host, too.
void addAtomics(llvm::ModulePassManager &); // at the pipeline's beginning
void addMarkedAtomics(llvm::ModulePassManager &); // once local variables are in registers
void addCheckMarks(llvm::ModulePassManager &); // once functions are inlined
void addLocalAtomics(llvm::FunctionPassManager &); // undoes those on local variables, between LLVM's passes

// Each adds one stage to the end of the module's pipeline, with LLVM's clean-up after it.

void addLongDouble(llvm::ModulePassManager &); // refuses long double, at the pipeline's beginning
void addVariables(llvm::ModulePassManager &); // forgets where local variables are
void addUnsupported(llvm::ModulePassManager &); // refuses what BPF cannot have
void addCalls(llvm::ModulePassManager &); // indirect calls become switches
void addOrdered(llvm::ModulePassManager &); // ordered loads, stores and fences become atomic operations
void addRecursion(llvm::ModulePassManager &); // recursion becomes iteration
void addInline(llvm::ModulePassManager &); // what loops or touches memory is inlined into the entry
void addFaults(llvm::ModulePassManager &); // faults in called functions become the program's result
void addSoftFloat(llvm::ModulePassManager &); // float and double become integers
void addArithmetic(llvm::ModulePassManager &); // operations that BPF lacks become ones that it has
void addMemory(llvm::ModulePassManager &); // pointers become offsets, accesses are guarded
void addMetering(llvm::ModulePassManager &); // loops end within their budget
void addPressure(llvm::ModulePassManager &); // values that the stack has no room for go to memory

void addBuiltins(llvm::ModulePassManager &); // comparisons of a few bytes become loads
void addUndefined(llvm::ModulePassManager &); // values that C leaves undefined become zero
void forgetVariables(llvm::Module &); // does what addVariables() does, for later passes
void linkRuntime(llvm::Module &); // the functions of soft_float_runtime.c that the passes called
bool isOfRuntime(const llvm::Function &); // such a function, which an SDK header may also call
void addSayHints(llvm::ModulePassManager &); // what authors say of how objects are used
void addHeedHints(llvm::ModulePassManager &); // read-mostly objects go to a map of their own
void addHeaders(llvm::ModulePassManager &); // reports what is read from packets and written to them
void addStep(llvm::ModulePassManager &, llvm::StringRef name); // counts instructions, for the report
void addRemarks(llvm::ModulePassManager &); // writes what the passes had to say

} // namespace lambda

#endif
