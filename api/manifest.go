package api

// Manifest says what an artifact holds and where it comes from. It is the config of the artifact's OCI image, so equal
// sources, built by equal tools, have equal manifests: it holds no time and no path.
type Manifest struct {
	Spec     Spec   `json:"spec"`     // with defaults
	Compiler string `json:"compiler"` // as the compiler names itself
	SDK      string `json:"sdk"`      // digest of the headers of the SDK

	Source File `json:"source"`          // tar of the lambda's directory
	BPF    File `json:"bpf,omitzero"`    // ELF object file for target nic
	Native File `json:"native,omitzero"` // shared library for target process

	Refused []Refusal `json:"refused,omitempty"` // targets of the spec that the lambda is not built for, and why

	Memory  uint64  `json:"memory"` // bytes of all global variables together; at most Spec.Limits.Memory
	Maps    []Map   `json:"maps,omitempty"`
	Layouts Layouts `json:"layouts,omitzero"`

	Members []Member `json:"members,omitempty"` // of a fused program, in its order; else empty
}

// Member is one lambda in a fused program.
type Member struct {
	Name   string `json:"name"`   // within the program
	Lambda string `json:"lambda"` // digest of its own artifact
}

// Layouts names the layouts of the global variables that a later revision takes over. Two are equal where names, places and types are;
// "" means no variables.
type Layouts struct {
	Kept     string `json:"kept,omitempty"`     // the variables declared LAMBDA_KEPT
	Migrated string `json:"migrated,omitempty"` // the variable declared LAMBDA_MIGRATED
	From     string `json:"from,omitempty"`     // the old variable that LAMBDA_MIGRATE() takes
}

// File is one file of an artifact, named by its content.
type File struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// Map is one BPF map of a lambda: a section of its global variables, or a map that it declares.
type Map struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	KeySize    uint32 `json:"key_size"`
	ValueSize  uint32 `json:"value_size"`
	MaxEntries uint32 `json:"max_entries"`
}
