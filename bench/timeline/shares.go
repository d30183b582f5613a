package timeline

import "github.com/lambdanic/lambdanic/api"

// Budget is how many ns of each second namespaces share on each CPU. The generator gets the rest of its CPU, and offers more than they serve.
const Budget = 3e8

// Weights are those of namespaces, by their numbers.
type Weights map[uint32]uint64

// Quotas are these weights, without other limits.
func (w Weights) Quotas() map[uint32]api.Quota {
	quotas := map[uint32]api.Quota{}
	for number, weight := range w {
		quotas[number] = api.Quota{Weight: &weight}
	}
	return quotas
}

// Parts are what each sharer got of what it gets alone.
func Parts(got, alone []float64) []float64 {
	parts := make([]float64, len(got))
	for i, v := range got {
		parts[i] = v / alone[i]
	}
	return parts
}
