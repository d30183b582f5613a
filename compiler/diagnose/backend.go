package diagnose

// StackLimit is in LLVM's message about a function whose frame the kernel would refuse.
const StackLimit = "BPF stack limit is exceeded"

// backend are the errors of LLVM's BPF code generator (lib/Target/BPF in LLVM 19), which speak of code that the author never wrote.
var backend = []message{
	on(StackLimit,
		"local variables, and what is in use at once, take more than the 512 bytes of stack that there are",
		"make large local arrays static, or split the function"),
	on(`too many arguments$|stack arguments are not supported`,
		"a function that is not inlined takes more than five arguments",
		"leave out noinline, or hand over a struct by its address"),
	on(`pass by value not supported$`, // after an address in LLVM's memory
		"a function that is not inlined takes a struct by value",
		"leave out noinline, or hand over the struct by its address"),
	on(`Branch target out of insn range`,
		"the program is so long that a branch does not reach from one end to the other: 32,767 instructions",
		"do less in one lambda, or leave out always_inline and macros that repeat much"),
	on(`variadic functions are not supported`,
		"a function takes a variable number of arguments",
		"give it a fixed number, or an array"),
}

// Compiler says in an author's terms what LLVM cannot compile to BPF; "" if the message is not known here.
func Compiler(text string) string {
	if meaning, advice := find(backend, text); meaning != "" {
		return meaning + ": " + advice
	}
	return ""
}
