// Package report holds results, and writes them as JSON, as a table and as plots.
package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
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

// Machine describes the machine of the figures, without which they mean nothing.
type Machine struct {
	Kernel string `json:"kernel"`
	CPUs   int    `json:"cpus"`
	CPU    string `json:"cpu"`
	Link   string `json:"link"`
}

// Result is one figure.
type Result struct {
	Name     string                `json:"name"`
	Unit     string                `json:"unit"`
	Value    float64               `json:"value"`              // the median
	Spread   [2]float64            `json:"spread"`             // the least and the greatest
	Against  map[string]float64    `json:"against,omitempty"`  // the other sides' values in the same run
	Ratio    map[string]float64    `json:"ratio,omitempty"`    // how many times better ours is
	Interval map[string][2]float64 `json:"interval,omitempty"` // of 95 % confidence, for the median of the rounds' ratios
	Source   string                `json:"source"`             // how it was measured
	Notes    []string              `json:"notes,omitempty"`    // what the figure leaves out, such as failures and their reasons
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

// Median is the middle value, or the mean of the two in the middle; 0 without values.
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

// Better says which direction is better.
type Better bool

// The directions.
const (
	Higher Better = true  // rates
	Lower  Better = false // times
)

// Ratio says how many times better ours is than theirs; 0 where that is undefined.
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
		if interval, ok := better.paired(ours, s).confidence(); ok {
			if r.Interval == nil {
				r.Interval = map[string][2]float64{}
			}
			r.Interval[other] = interval
		}
	}
	return r
}

// paired are the ratios of two sides round by round: whatever slowed the machine for a while affected both.
func (b Better) paired(ours, theirs Samples) (ratios Samples) {
	if len(ours) != len(theirs) {
		return nil
	}
	for i := range ours {
		ratios = append(ratios, b.Ratio(ours[i], theirs[i]))
	}
	return ratios
}

// confidence is the interval that contains the median with at least 95 % confidence, whatever the distribution: as many of the values
// are below a median as coin tosses fall on one side (binomial). It takes at least six values.
func (s Samples) confidence() (interval [2]float64, ok bool) {
	n := len(s)
	sorted := slices.Sorted(slices.Values(s))
	// The chance that at most k of n values are below the median: 2.5 % is left out at each end.
	one := math.Pow(0.5, float64(n))
	chance, k := one, 0
	for chance <= 0.025 && k < n/2 {
		interval, ok = [2]float64{sorted[k], sorted[n-1-k]}, true
		one *= float64(n-k) / float64(k+1)
		chance, k = chance+one, k+1
	}
	return interval, ok
}

// Goal compares with a value that was to be reached.
func Goal(v float64) map[string]Samples { return map[string]Samples{"goal": {v}} }

// WriteJSON writes the suite, indented.
func (s Suite) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return fmt.Errorf("write suite %s: %w", s.Suite, err)
	}
	return nil
}
