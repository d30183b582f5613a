package diagnose

// StackLimit is in what LLVM says of a function whose frame the kernel would not take.
const StackLimit = "BPF stack limit is exceeded"

// backend are LLVM's own errors of generating BPF (lib/Target/BPF in LLVM 19): they speak of what the author never wrote.
var backend = []message{
	on(StackLimit,
		"local variables, and what is in use at once, take more than the 512 bytes of stack that there are",
		"make large local arrays static, or split the function"),
	on(`too many arguments$|stack arguments are not supported`,
		"a function that is not inlined takes more than five arguments",
		"leave out noinline, or hand over a struct by its address"),
	on(`pass by value not supported$`, // behind the address in LLVM's memory of what is called
		"a function that is not inlined takes a struct by value",
		"leave out noinline, or hand over the struct by its address"),
	on(`Branch target out of insn range`,
		"the program is so long that a branch does not reach from one end to the other: 32,767 instructions",
		"do less in one lambda, or leave out always_inline and macros that repeat much"),
	on(`variadic functions are not supported`,
		"a function takes a variable number of arguments",
		"give it a fixed number, or an array"),
}

// Compiler says in an author's terms what LLVM cannot make BPF of; "" if the message is not known here.
func Compiler(text string) string {
	if meaning, advice := find(backend, text); meaning != "" {
		return meaning + ": " + advice
	}
	return ""
}
