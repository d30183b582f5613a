package diagnose

import (
	"regexp"
)

// A message of the verifier or of LLVM, with what could not be proven or made, and what to change. Both can use the message's groups.
type message struct {
	text            *regexp.Regexp
	meaning, advice string
}

func on(text, meaning, advice string) message {
	return message{regexp.MustCompile(text), meaning, advice}
}

// explain looks a message of the verifier up.
func explain(text string) (meaning, advice string) { return find(messages, text) }

// find looks a text up in a list.
func find(list []message, text string) (meaning, advice string) {
	for _, m := range list {
		if at := m.text.FindStringSubmatchIndex(text); at != nil {
			expand := func(template string) string { return string(m.text.ExpandString(nil, template, text, at)) }
			return expand(m.meaning), expand(m.advice)
		}
	}
	return "", ""
}

// messages are those of kernel/bpf/verifier.c in Linux 6.1 to 6.18 that a lambda can meet, specific ones first.
var messages = []message{
	// Packets.
	on(`invalid access to packet, off=(?P<off>-?\d+) size=(?P<size>\d+)`,
		"the packet may end before the ${size} bytes that are accessed",
		"ask for all of them with one payload(headers, offset, length), return where it is NULL, and check an index against that length"),
	on(`offset is outside of the packet`,
		"the offset into the packet may be too large for any packet",
		"compare it with the payload's length, or a constant, before it is used"),

	// Maps and objects.
	on(`invalid access to map value, value_size=(?P<all>\d+) off=-\d+ size=(?P<size>\d+)`,
		"an access of ${size} bytes may lie before the beginning of an object of ${all} bytes",
		"make the index unsigned, or check that it is not negative"),
	on(`invalid access to map value, value_size=(?P<all>\d+) off=(?P<off>-?\d+) size=0`,
		"a length may be zero or more than is left of an object of ${all} bytes",
		"check that the length is at least 1 and at most what is left"),
	on(`invalid access to map value, value_size=(?P<all>\d+) off=(?P<off>-?\d+) size=(?P<size>\d+)`,
		"an access of ${size} bytes may reach offset ${off} of an object of ${all} bytes",
		"check that the index is below the number of elements, right before the access"),
	on(`invalid access to (map key|memory|memory, mem_size=\d+)`,
		"an access may lie outside of its memory",
		"check the index against the size, right before the access"),
	on(`write into map forbidden|cannot write into rdonly|only read from .* is supported`,
		"a constant is written to",
		"leave out const, or write to a copy"),
	on(`read from map forbidden`,
		"an object is read that may only be written",
		"read from another one"),
	on(`invalid mem access '(map_value|mem|sock|ptr_\w*|rcu_\w*)_or_null'|invalid mem access 'mem_or_null'`,
		"the pointer may be NULL, where an element was not found",
		"compare the result with NULL before it is used"),
	on(`invalid mem access '(scalar|inv)'`,
		"a number is used as a pointer, or a pointer was lost on its way through memory",
		"derive the pointer from its object where it is used: object + index"),
	on(`invalid mem access '(\w+)'`,
		"memory is accessed which is not the lambda's",
		"access only the request, the lambda's own objects and its stack"),
	on(`same insn cannot be used with different pointers`,
		"one instruction would access memory of two kinds",
		"access each kind in a branch of its own"),
	on(`tried to dereference|access beyond struct|cannot access ptr member`,
		"a structure of the kernel is accessed", "use the SDK's functions"),

	// Indices and lengths.
	on(`unbounded memory access, use 'var &= const' or 'if \(var < const\)'`,
		"the length has no upper bound",
		"compare it with a constant right before the call, and return where it is larger"),
	on(`unbounded memory access, make sure to bounds check any such access`,
		"the index has no upper bound",
		"compare it with the number of elements right before the access, in the same variable and type"),
	on(`min value is negative, either use unsigned or 'var &= const'`,
		"the length may be negative",
		"make it unsigned, and compare it with a constant right before the call"),
	on(`min value is negative, either use unsigned index`,
		"the index may be negative",
		"make it unsigned, or check that it is not negative"),
	on(`(max|min) value is outside of the (allowed memory range|array range)`,
		"the index may lie outside of the object",
		"compare it with the number of elements right before the access"),
	on(`invalid zero-sized read`,
		"the length may be zero",
		"return before the call where it is"),
	on(`math between (\w+) pointer and register with unbounded min value`,
		"an index may be any number, negative ones too",
		"make it unsigned, and compare it with a constant before it is added to the pointer"),
	on(`math between (\w+) pointer and (-?\d+) is not allowed|value (-?\d+) makes (\w+) pointer be out of bounds|makes pointer out of bounds`,
		"a pointer goes further out of its object than can be followed",
		"keep the index below 512 MiB, and check it before it is added to the pointer"),

	// Pointers.
	on(`pointer arithmetic on (\w+?)_or_null prohibited`,
		"the pointer may be NULL",
		"compare it with NULL before anything is added to it"),
	on(`pointer arithmetic with .* operator prohibited|bitwise operator .* on pointer prohibited`,
		"a pointer is used in arithmetic other than sums and differences",
		"compute with an index, and add it to the pointer last"),
	on(`32-bit pointer arithmetic prohibited|partial copy of pointer`,
		"a pointer is cut to 32 bits",
		"keep pointers in pointers or uintptr_t"),
	on(`pointer arithmetic on (\w+) prohibited|pointer \+= pointer prohibited|subtract(ion)? .*pointer.* prohibited|tried to subtract pointer|pointer -= pointer prohibited`,
		"two pointers are added, or pointers into different objects are subtracted",
		"compute with indices, and add one to the pointer last"),
	on(`pointer comparison prohibited`,
		"pointers into different objects are compared",
		"compare indices"),
	on(`leaks addr|leak.* pointer`,
		"a pointer leaves the program as a number",
		"return or store an index"),
	on(`dereference of modified (\w+) ptr|variable ctx access`,
		"the request's context is accessed at an address that was computed",
		"use the SDK's functions on headers"),
	on(`invalid bpf_context access`,
		"the request's context is accessed where it has no field",
		"use the SDK's functions on headers"),
	on(`attempt to corrupt spilled pointer|corrupted spill memory`,
		"a store may hit a pointer that was put aside on the stack",
		"check the index of the local array right before the store"),
	on(`misaligned (\w+ )?access`,
		"an access is not aligned to its size",
		"copy the bytes with memcpy, or align the object"),

	// The stack.
	on(`(invalid indirect read from stack|invalid read from stack|invalid variable-offset (indirect )?(read|access).* stack)`,
		"a part of a local variable is used before anything was stored there; padding counts",
		"initialise it whole: = {0}, or memset"),
	on(`invalid (unbounded )?(variable-offset )?(indirect )?(write|read|access) to (variable-offset )?stack|invalid stack (off|access)|stack access .* out of`,
		"an access may lie outside of a local variable",
		"check the index against the array's size right before the access, or make the array static"),
	on(`combined stack size of (?P<calls>\d+) calls is (?P<size>\d+)`,
		"local variables take ${size} bytes of stack, more than the 512 that there are",
		"make large local arrays static"),
	on(`stack (size|depth) .*(exceed|too large)|Too large`,
		"local variables take more than the 512 bytes of stack that there are",
		"make large local arrays static"),
	on(`!read_ok`,
		"a variable is used that is not set on every path to here",
		"initialise it where it is declared"),

	// Loops and size.
	on(`infinite loop detected|back-edge from insn|loop detected`,
		"the loop is not known to end",
		"count a variable of its own up to a constant, and do nothing else to it"),
	on(`BPF program is too large\. Processed (?P<n>\d+) insn`,
		"all paths through the program together are longer than the ${n} instructions that the verifier walks",
		"make loops shorter, or branches in them fewer"),
	on(`sequence of (?P<n>\d+) jumps is too complex`,
		"there are more than ${n} branches to follow at once",
		"split the function into steps, or make loops with branches shorter"),
	on(`(program too large|too many instructions|insns .* exceeds)`,
		"the program is too large",
		"make functions noinline that are called more than once"),
	on(`call stack of (?P<n>\d+) frames is too deep|the call stack`,
		"functions call each other deeper than 8 levels",
		"let the compiler inline some: static, without noinline"),
	on(`unreachable insn|jump out of range|last insn is not an exit|falls? through`,
		"the program has unreachable code, or a path that leaves it",
		"look for inline assembly and __builtin_unreachable() there"),
	on(`recursive call|recursion`,
		"a function calls itself",
		"write a loop with an array for what is to be remembered"),

	// Calls.
	on(`helper access to the (packet|\w+) is not allowed`,
		"a function of the kernel is handed memory that it does not take",
		"copy it to a local variable first"),
	on(`(unknown func|program of this type cannot use helper|cannot call helper|helper call is not allowed|helper call might sleep)`,
		"a function of the kernel is called that an XDP program may not call",
		"use the SDK's functions"),
	on(`cannot call GPL-restricted function`,
		"a function of the kernel is called that needs a licence compatible with the GPL",
		"leave the SDK's LICENSE in place"),
	on(`calling kernel function|kernel function .* not allowed|kfunc`,
		"a function of the kernel is called that is not for lambdas",
		"use the SDK's functions"),
	on(`R(?P<arg>[1-5]) type=(?P<is>\S+) expected=(?P<want>.*)`,
		"argument ${arg} of the call is a ${is}, where it takes ${want}",
		"hand it a pointer of that kind, which is not NULL"),
	on(`Caller passes invalid args|arg#\d+ .*(expected|invalid)`,
		"a function is called with arguments that it was not proven safe with",
		"make the function static, or hand it numbers instead of pointers"),
	on(`R0 .*should have been in|At program exit the register R0`,
		"the function may return a value that is not a verdict",
		"return one of RETURN_FORWARD, RETURN_DROP or RETURN_FAULT"),
	on(`Unreleased reference`,
		"something that was taken is not given back on every path out",
		"give it back before each return"),
	on(`no valid bpf_spin_lock|has to have BTF in order to use bpf_spin_lock|bpf_spin_lock.* (at off|at wrong)`,
		"the locked address is not a lock",
		"put a struct bpf_spin_lock into the map's value, and lock that"),
	on(`bpf_spin_unlock is missing|(inside|holding) .*lock|lock-ed region|spin_lock`,
		"between taking the lock and giving it back more is done than plain loads and stores",
		"call nothing in between, and give it back on every path out"),

	// Instructions.
	on(`div(ision|ided)? by zero`,
		"a constant divisor is zero", "divide by something else"),
	on(`invalid shift`,
		"a constant shift is as wide as its operand, or wider", "shift by less"),
	on(`unknown opcode|reserved fields|BPF_ATOMIC uses|unknown insn`,
		"the kernel does not know an instruction",
		"use a newer kernel"),
	on(`verifier bug|BUG|misconfigured verifier`,
		"the verifier is at fault, not the program",
		"report it to bpf@vger.kernel.org with the full log, and write the line in another way"),
}
