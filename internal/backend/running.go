package backend

import "github.com/lambdanic/lambdanic/api"

// Running is what the backends of a node run: a status by target and workload ID.
type Running map[api.Target]map[uint32]Status

// Serves tells whether a target serves a revision of a workload, on all its devices.
func (r Running) Serves(t api.Target, workload, revision uint32) bool {
	s, ok := r[t][workload]
	return ok && s.Revision == revision
}
