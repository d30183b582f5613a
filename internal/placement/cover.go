package placement

import (
	"math"
	"math/bits"
	"slices"
)

// cover is a choice of tasks that have to go so that nothing is short any more.
type cover struct {
	short  []int64 // by row: more than 0
	price  []int64 // of each task
	relief [][]relief
}

// relief is what it adds to a row that a task goes.
type relief struct {
	row    int
	amount int64
}

// fewTasks is for how many all subsets are tried.
const fewTasks = 12

// solve is a set of tasks that costs the least, the smallest of several, or for more than a few tasks that greedy finds; ok is false if all
// are not enough.
func (c *cover) solve() (gone []int, ok bool) {
	if len(c.price) > fewTasks {
		return c.greedy()
	}
	least := int64(math.MaxInt64)
	left := make([]int64, len(c.short))
	for mask := range uint(1) << len(c.price) {
		copy(left, c.short)
		cost := int64(0)
		var set [fewTasks]int
		n := 0
		for k := range c.price {
			if mask>>k&1 == 1 {
				cost += c.price[k]
				c.take(left, k)
				set[n], n = k, n+1
			}
		}
		if (cost < least || cost == least && bits.OnesCount(mask) < len(gone)) && covered(left) {
			gone, least, ok = slices.Clone(set[:n]), cost, true
		}
	}
	return gone, ok
}

// greedy takes tasks one by one, each the one that relieves most for its cost, where all that is short of a row counts the same; and then lets
// stay what the others make superfluous, the dearest first.
func (c *cover) greedy() (gone []int, ok bool) {
	left, taken := slices.Clone(c.short), make([]bool, len(c.price))
	for !covered(left) {
		best, most := -1, 0.0
		for k := range c.price {
			if worth := c.worth(left, k) / float64(c.price[k]); !taken[k] && worth > most {
				best, most = k, worth
			}
		}
		if best < 0 {
			return nil, false
		}
		c.take(left, best)
		taken[best] = true
		gone = append(gone, best)
	}
	slices.SortStableFunc(gone, func(a, b int) int { return int(min(1, max(-1, c.price[b]-c.price[a]))) })
	return slices.DeleteFunc(gone, func(k int) bool { return c.spare(left, k) }), true
}

// worth sums the shares of what was short that a task relieves of what is left.
func (c *cover) worth(left []int64, k int) (sum float64) {
	for _, r := range c.relief[k] {
		sum += float64(min(r.amount, max(0, left[r.row]))) / float64(c.short[r.row])
	}
	return sum
}

func (c *cover) take(left []int64, k int) {
	for _, r := range c.relief[k] {
		left[r.row] -= r.amount
	}
}

// spare lets a task stay if nothing is short then.
func (c *cover) spare(left []int64, k int) bool {
	for _, r := range c.relief[k] {
		if left[r.row]+r.amount > 0 {
			return false
		}
	}
	for _, r := range c.relief[k] {
		left[r.row] += r.amount
	}
	return true
}

func covered(left []int64) bool {
	return !slices.ContainsFunc(left, func(n int64) bool { return n > 0 })
}
