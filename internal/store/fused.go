package store

import "slices"

// Fused says that a function was deployed as one program with others. It is equal in all of them, and in no function of
// another deploy.
type Fused struct {
	Artifact string   `json:"artifact"` // of the program: NAME@sha256:...
	Members  []Member `json:"members"`  // in the program's order
}

// Member is one lambda of a program, as it was deployed.
type Member struct {
	Name     string `json:"name"` // within the program
	Workload uint32 `json:"workload"`
	Revision uint32 `json:"revision"`
}

// Equal tells whether both are of one deploy.
func (f *Fused) Equal(other *Fused) bool {
	if f == nil || other == nil {
		return f == other
	}
	return f.Artifact == other.Artifact && slices.Equal(f.Members, other.Members)
}

// tell fills in the members' numbers where functions are fused: the functions are the members, in their order.
func tell(fs []*Function) {
	if fs[0].Fused == nil {
		return
	}
	fused := &Fused{Artifact: fs[0].Fused.Artifact, Members: slices.Clone(fs[0].Fused.Members)}
	for i, f := range fs {
		fused.Members[i].Workload, fused.Members[i].Revision = f.Workload, f.Revision
		f.Fused = fused
	}
}
