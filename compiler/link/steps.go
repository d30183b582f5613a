package link

import "context"

// A Step is how long the program is behind one step (λ-NIC, figure 9).
type Step struct {
	Name         string `json:"name"`
	Instructions int    `json:"instructions"`
}

// Steps builds the program step by step: first as the authors wrote its members, each with a table of its own that routes requests
// to it and with its own copies of everything; then with more and more of what Fuse does.
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

// Naive makes one program of packed sources without what Fuse does to make it smaller, but for the match, which is reduced so that
// the program can be deployed as Fuse's: the other side of a comparison.
func Naive(ctx context.Context, sources [][]byte) (*Program, error) {
	return fuse(ctx, sources, stage{reduce: true})
}
