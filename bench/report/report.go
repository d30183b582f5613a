// Package report holds what was measured, and writes it as JSON, as a table and as plots.
package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Suite is the outcome of one benchmark suite, in the shape that `lambdanic bench --json` prints.
type Suite struct {
	Suite   string   `json:"suite"`
	Machine Machine  `json:"machine"`
	Results []Result `json:"results"`
}

// Machine says where the figures come from, without which they mean nothing.
type Machine struct {
	Kernel string `json:"kernel"`
	CPUs   int    `json:"cpus"`
	CPU    string `json:"cpu"`
	Link   string `json:"link"`
}

// Result is one figure.
type Result struct {
	Name    string             `json:"name"`
	Unit    string             `json:"unit"`
	Value   float64            `json:"value"`             // the median
	Spread  [2]float64         `json:"spread"`            // the least and the greatest
	Against map[string]float64 `json:"against,omitempty"` // what others did in the same run
	Ratio   map[string]float64 `json:"ratio,omitempty"`   // how many times better ours is
	Source  string             `json:"source"`            // how it was measured
}

// ThisMachine describes the machine, for measurements over a link of the given kind.
func ThisMachine(link string) Machine {
	m := Machine{CPUs: runtime.NumCPU(), CPU: cpuModel(), Link: link}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return m
}

// cpuModel is "" where /proc/cpuinfo does not tell.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Samples are the values of one figure in repeated runs.
type Samples []float64

// Median is the middle value, or the mean of the two in the middle; 0 of none.
func (s Samples) Median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Spread is the least and the greatest value.
func (s Samples) Spread() [2]float64 {
	if len(s) == 0 {
		return [2]float64{}
	}
	return [2]float64{slices.Min(s), slices.Max(s)}
}

// Better says which way a figure is good.
type Better bool

// The ways.
const (
	Higher Better = true  // rates
	Lower  Better = false // times
)

// Ratio says how many times better ours is than theirs; 0 where that has no meaning.
func (b Better) Ratio(ours, theirs float64) float64 {
	if b == Lower {
		ours, theirs = theirs, ours
	}
	if theirs == 0 {
		return 0
	}
	return ours / theirs
}

// Compare makes a result of our samples and those of others from the same runs.
func Compare(name, unit string, better Better, source string, ours Samples, others map[string]Samples) Result {
	r := Result{Name: name, Unit: unit, Value: ours.Median(), Spread: ours.Spread(), Source: source}
	for other, s := range others {
		if r.Against == nil {
			r.Against, r.Ratio = map[string]float64{}, map[string]float64{}
		}
		r.Against[other] = s.Median()
		r.Ratio[other] = better.Ratio(r.Value, s.Median())
	}
	return r
}

// WriteJSON writes the suite, indented.
func (s Suite) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return fmt.Errorf("write suite %s: %w", s.Suite, err)
	}
	return nil
}
