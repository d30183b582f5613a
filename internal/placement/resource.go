package placement

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Resource is what a node has and a microservice takes.
type Resource uint8

// The resources: those that E3 names as constraints (section 3.3), with their units.
const (
	Cores     Resource = iota // thousandths of a core
	Memory                    // MiB
	Disk                      // MiB
	Bandwidth                 // Mb/s
	Requests                  // outstanding requests, which a node has room for
	resources
)

var resourceNames = [resources]string{"millicores", "memory", "disk", "bandwidth", "requests"}
var resourceUnits = [resources]string{"", " MiB", " MiB", " Mb/s", ""}

// String is the resource's name in files.
func (r Resource) String() string { return resourceNames[r] }

// Vector is an amount of each resource.
type Vector [resources]int64

// maxAmount bounds an amount, so that no sum overflows.
const maxAmount = 1 << 40

// MarshalJSON writes an object of the amounts that are not 0.
func (v Vector) MarshalJSON() ([]byte, error) {
	m := make(map[string]int64)
	for r, amount := range v {
		if amount != 0 {
			m[resourceNames[r]] = amount
		}
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads an object of amounts by the resources' names. Those that are missing are 0.
func (v *Vector) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	m := make(map[string]int64)
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("resources: %w", err)
	}
	*v = Vector{}
	for name, amount := range m {
		r := slices.Index(resourceNames[:], name)
		if r < 0 {
			return fmt.Errorf("resource %q: it has to be one of %s", name, strings.Join(resourceNames[:], ", "))
		}
		v[r] = amount
	}
	return nil
}

// String lists the amounts that are not 0.
func (v Vector) String() string {
	var parts []string
	for r, amount := range v {
		if amount != 0 {
			parts = append(parts, Resource(r).amount(amount))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// amount has the unit once: millicores are one.
func (r Resource) amount(n int64) string { return fmt.Sprintf("%d%s %s", n, resourceUnits[r], r) }

// valid is an error where an amount is negative or beyond all bounds.
func (v Vector) valid() error {
	for r, amount := range v {
		if amount < 0 || amount > maxAmount {
			return fmt.Errorf("%s is %d, which is not between 0 and %d", Resource(r), amount, int64(maxAmount))
		}
	}
	return nil
}

func (v *Vector) add(w *Vector) {
	for r := range v {
		v[r] += w[r]
	}
}

func (v *Vector) sub(w *Vector) {
	for r := range v {
		v[r] -= w[r]
	}
}

// covers says whether v has at least w of everything.
func (v *Vector) covers(w *Vector) bool {
	return v[0] >= w[0] && v[1] >= w[1] && v[2] >= w[2] && v[3] >= w[3] && v[4] >= w[4]
}

// shares weighs resources, so that amounts of different ones add up: 2^32 is all that the largest node has. Whole numbers keep sums exact.
type shares Vector

const whole = 1 << 32

// of sums amounts, exactly for what a node can have free.
func (w *shares) of(v *Vector) (sum int64) {
	for r := range v {
		sum += v[r] * w[r]
	}
	return sum
}

// missing sums what v lacks of need. It is a float as a need may be far beyond all that nodes have; rounding keeps the order of sums.
func (w *shares) missing(v, need *Vector) (sum float64) {
	for r := range v {
		if lack := need[r] - v[r]; lack > 0 {
			sum += float64(lack) * float64(w[r])
		}
	}
	return sum
}
