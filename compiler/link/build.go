package link

import (
	"context"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/artifact"
)

// Name is the name of artifacts that hold a fused program.
const Name = "fused"

// Build makes one artifact of several, for the NIC only: the program that Fuse makes of their sources. If opts have a store, what was fused
// before is found there. Errors are those of Fuse.
func Build(ctx context.Context, members []*artifact.Artifact, opts compiler.Options) (*artifact.Artifact, error) {
	l, err := compiler.NewLinker()
	if err != nil {
		return nil, err
	}
	var digests []string
	for _, m := range members {
		digests = append(digests, m.Digest)
	}
	key, err := l.Key(digests)
	if err != nil {
		return nil, err
	}
	return artifact.Build(opts.Store, key, func() (*artifact.Artifact, error) { return buildArtifact(ctx, members) })
}

func buildArtifact(ctx context.Context, members []*artifact.Artifact) (*artifact.Artifact, error) {
	var sources [][]byte
	for _, m := range members {
		if m.BPF == nil {
			return nil, fmt.Errorf("%w: %s is not built for the NIC: add %s to `targets` in its %s, or leave it out",
				ErrMember, m.Manifest.Spec.Name, api.TargetNIC, api.SpecFile)
		}
		sources = append(sources, m.Source)
	}
	p, err := Fuse(ctx, sources)
	if err != nil {
		return nil, err
	}
	a := &artifact.Artifact{BPF: p.BPF}
	a.Manifest = api.Manifest{
		Spec: p.Spec(), Compiler: p.Compiler, SDK: p.SDK, Memory: p.Contents.Memory, Maps: p.Contents.Maps,
	}
	for i, m := range p.Members {
		if p.Contents.Members[m.Name].Kept != members[i].Manifest.Layouts.Kept {
			return nil, fmt.Errorf("%w: the kept objects of %s are laid out in another way than when it is alone: declare them without static, or leave it out",
				ErrMember, m.Spec.Name)
		}
		a.Manifest.Members = append(a.Manifest.Members, api.Member{Name: m.Name, Lambda: members[i].Digest})
	}
	if limit := uint64(a.Manifest.Spec.Limits.Memory); a.Manifest.Memory > limit {
		return nil, fmt.Errorf("%w: the objects of %s take %d bytes together, and may take %d: raise limits.memory of one, or leave it out",
			ErrMember, p.names(), a.Manifest.Memory, limit)
	}
	return a, nil
}

// Spec limits the program to the memory of all members together, and to the time of the slowest. The loader gives each member its own time.
func (p *Program) Spec() api.Spec {
	s := api.Spec{Name: Name, Targets: []api.Target{api.TargetNIC}}.Default()
	s.Limits = api.LimitsSpec{}
	for _, m := range p.Members {
		s.Limits.Memory = min(s.Limits.Memory+m.Spec.Limits.Memory, api.MaxMemory)
		s.Limits.Time = max(s.Limits.Time, m.Spec.Limits.Time)
	}
	return s
}
