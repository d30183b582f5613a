package link

import "context"

// A Step is the length of the program after one step (λ-NIC, figure 9).
type Step struct {
	Name         string `json:"name"`
	Instructions int    `json:"instructions"`
}

// Steps builds the program step by step. In the first step, each member is as its author wrote it, with its own table that routes requests to
// it and its own copies of everything. Each further step adds one of Fuse's.
func Steps(ctx context.Context, sources [][]byte) (steps []Step, err error) {
	for _, s := range []struct {
		name  string
		stage stage
	}{
		{"naive", stage{}},
		{"coalescing", stage{coalesce: true}},
		{"match_reduction", stage{coalesce: true, reduce: true}},
		{"memory_stratification", everything},
	} {
		p, err := fuse(ctx, sources, s.stage)
		if err != nil {
			return nil, err
		}
		n, err := p.Instructions()
		if err != nil {
			return nil, err
		}
		steps = append(steps, Step{s.name, n})
	}
	return steps, nil
}

// Naive makes one program of packed sources for comparisons with Fuse. Of the steps that make it smaller, it has only match reduction, so
// that the program can be deployed like Fuse's.
func Naive(ctx context.Context, sources [][]byte) (*Program, error) {
	return fuse(ctx, sources, stage{reduce: true})
}
