package link

import (
	"bytes"
	"fmt"
)

// entry is the program that calls the members.
func entry(members []Member, s stage) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#include \"lambda.h\"\n")
	argument, passed := "EXTRACTED_HEADERS_T *", "&headers"
	if !s.coalesce {
		argument, passed = "struct xdp_md *", "ctx"
	}
	for _, m := range members {
		fmt.Fprintf(&b, "int lambda_member_%s(%s);\n", m.Name, argument)
		if !s.reduce {
			fmt.Fprintf(&b, table, m.Name)
		}
	}
	if s.reduce {
		fmt.Fprintf(&b, "const volatile uint32_t %s[%d] = {", MembersVariable, len(members))
		for i := range members { // different numbers, so that a verifier run before loading sees all members
			fmt.Fprintf(&b, " %d,", i+1)
		}
		fmt.Fprintf(&b, " };\n")
	}
	b.WriteString(begin)
	for i, m := range members {
		condition := fmt.Sprintf("workload == %s[%d]", MembersVariable, i)
		if !s.reduce {
			condition = fmt.Sprintf("bpf_map_lookup_elem(&lambda_routes_%s, &workload)", m.Name)
		}
		fmt.Fprintf(&b, "\tif (%s)\n\t\treturn lambda_member_%s(%s);\n", condition, m.Name, passed)
	}
	b.WriteString(end)
	return b.Bytes()
}

// Without match reduction, each member has a table of the workload IDs that are routed to it.
const table = `struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint32_t);
} lambda_routes_%s SEC(".maps");
`

const begin = `SEC("xdp.frags")
int lambda(struct xdp_md *ctx)
{
	EXTRACTED_HEADERS_T headers = { .ctx = ctx };
	uint32_t zero = 0, workload;

	headers.req = bpf_map_lookup_elem(&ln_requests, &zero);
	if (!headers.req)
		return RETURN_FAULT;
	headers.base = headers.req->payload_off;
	lambda_opaque(headers.base);
	if (headers.base > 0xff)
		return RETURN_FAULT;
	workload = headers.req->match.workload;
`

const end = `	return RETURN_FAULT;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
`
