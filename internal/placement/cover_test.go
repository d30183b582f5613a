package placement

import (
	"math"
	"slices"
	"testing"

	"github.com/lambdanic/lambdanic/test/seed"
)

// leastCover tries all sets: the least that is enough, or -1.
func leastCover(c *cover) (least int64) {
	least = -1
	for mask := range 1 << len(c.price) {
		cost, left := int64(0), slices.Clone(c.short)
		for k := range c.price {
			if mask>>k&1 == 1 {
				cost += c.price[k]
				for _, r := range c.relief[k] {
					left[r.row] -= r.amount
				}
			}
		}
		if slices.Max(left) <= 0 && (least < 0 || cost < least) {
			least = cost
		}
	}
	return least
}

// Few tasks are tried in all sets. What is found for many is exact where it is said to be, else within its bound, and none of it is superfluous.
func TestCover(t *testing.T) {
	r := seed.Rand(t)
	exact, near, never := 0, 0, 0
	for range 3000 {
		c := cover{}
		uniform := r.IntN(2) == 0
		rows := 1
		if !uniform {
			rows += r.IntN(4)
		}
		largest := int64(0)
		for range rows {
			c.short = append(c.short, 1+r.Int64N(12))
			largest = max(largest, c.short[len(c.short)-1])
		}
		for range 1 + r.IntN(9) {
			var all []relief
			for row := range rows {
				if amount := r.Int64N(6); amount > 0 {
					all = append(all, relief{row, amount})
				}
			}
			price := int64(1)
			if !uniform {
				price += r.Int64N(10)
			}
			c.relief, c.price = append(c.relief, all), append(c.price, price)
		}
		least := leastCover(&c)
		few, ok := c.solve()
		many, ok2 := c.greedy()
		if ok != (least >= 0) || ok2 != ok {
			t.Fatalf("%+v: %v and %v, and the least is %d", c, ok, ok2, least)
		}
		if !ok {
			never++
			continue
		}
		cost := func(gone []int) (sum int64) {
			left := slices.Clone(c.short)
			for _, k := range gone {
				sum += c.price[k]
				c.take(left, k)
			}
			if !covered(left) {
				t.Fatalf("%+v: %v is not enough", c, gone)
			}
			for _, k := range gone {
				if c.spare(slices.Clone(left), k) {
					t.Fatalf("%+v: %v does not need %d", c, gone, k)
				}
			}
			return sum
		}
		if got := cost(few); got != least {
			t.Fatalf("%+v: %v costs %d, and the least is %d", c, few, got, least)
		}
		got := cost(many)
		// The last step relieves at least 1 of what was short of a row.
		if bound := 1 + math.Log(float64(rows)*float64(largest)); float64(got) > bound*float64(least) || uniform && got != least {
			t.Fatalf("%+v: %v costs %d, and the least is %d", c, many, got, least)
		}
		if got == least {
			exact++
		}
		near++
	}
	if 10*exact < 8*near || never < 100 {
		t.Errorf("%d of %d are the least, %d cannot be", exact, near, never)
	}
}

func TestCoverByHand(t *testing.T) {
	c := cover{short: []int64{10}, price: []int64{1, 2, 4}, relief: [][]relief{{{0, 4}}, {{0, 5}}, {{0, 6}}}}
	// It takes 0, 1 and 2, in that order; then 0 or 1 may stay, and 1 is dearer.
	if gone, ok := c.greedy(); !ok || len(gone) != 2 || slices.Contains(gone, 1) {
		t.Errorf("%v go", gone)
	}
	c = cover{short: []int64{100, 2}, relief: [][]relief{{{0, 50}, {1, 1}}}}
	if got := c.worth([]int64{100, 2}, 0); got != 0.5+0.5 {
		t.Errorf("a half of each is worth %g", got)
	}
	if got := c.worth([]int64{25, 0}, 0); got != 0.25 {
		t.Errorf("the last quarter of one is worth %g", got)
	}
}
