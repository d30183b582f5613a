package api

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The faults' names and meanings.
var faults = [...]struct{ name, meaning string }{
	FaultOwn:       {"own", "the lambda gave the request up: RETURN_FAULT, abort(), or a reply that does not fit"},
	FaultTime:      {"time", "it ran longer than limits.time"},
	FaultBounds:    {"bounds", "it used an address outside of its memory"},
	FaultRecursion: {"recursion", "it called itself too deep"},
	FaultMemory:    {"memory", "it asked for more memory than there is"},
	FaultDivision:  {"division", "it divided by zero"},
	FaultCrash:     {"crash", "its process died"},
}

// String names the fault, as FaultsBy does; "" where it is unknown.
func (f Fault) String() string {
	if int(f) < len(faults) {
		return faults[f].name
	}
	return ""
}

// Meaning says what happened, in a sentence without its end; "" where that is not known.
func (f Fault) Meaning() string {
	if int(f) < len(faults) {
		return faults[f].meaning
	}
	return ""
}

// FaultsBy counts the causes of faults, by Fault. In JSON it is an object with those that are not zero, by their names.
type FaultsBy [8]uint64

// MarshalJSON implements json.Marshaler.
func (by FaultsBy) MarshalJSON() ([]byte, error) {
	named := map[string]uint64{}
	for i, n := range by {
		if n > 0 {
			named[Fault(i).String()] = n
		}
	}
	return json.Marshal(named)
}

// UnmarshalJSON implements json.Unmarshaler. It takes numbers as well as names, and leaves out unknown ones.
func (by *FaultsBy) UnmarshalJSON(text []byte) error {
	var named map[string]uint64
	if err := json.Unmarshal(text, &named); err != nil {
		return fmt.Errorf("read causes of faults: %w", err)
	}
	*by = FaultsBy{}
	for i := 1; i < len(faults); i++ {
		by[i] = named[Fault(i).String()] + named[strconv.Itoa(i)]
	}
	return nil
}

// String lists the causes that are not zero: "3 time, 1 bounds"; "" where all are zero.
func (by FaultsBy) String() string { return by.list(func(f Fault) string { return f.String() }) }

// Explain lists them as String does, with what each means.
func (by FaultsBy) Explain() string {
	return by.list(func(f Fault) string { return f.String() + " (" + f.Meaning() + ")" })
}

// Since is how many of each cause came after an earlier count.
func (by FaultsBy) Since(earlier FaultsBy) FaultsBy {
	for i := range by {
		by[i] -= min(by[i], earlier[i])
	}
	return by
}

func (by FaultsBy) list(what func(Fault) string) string {
	var parts []string
	for i, n := range by {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what(Fault(i))))
		}
	}
	return strings.Join(parts, ", ")
}
