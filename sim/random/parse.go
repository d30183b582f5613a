package random

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lambdanic/lambdanic/sim/event"
)

// Syntax says what ParseTime takes.
const Syntax = "TIME, fixed:TIME, exponential:MEAN, bimodal:SHORT,LONG,SHARE-OF-LONG, or file:PATH with a time a line; a time has its unit, as 800ns or 1.5us"

// ParseTime reads a distribution of times.
func ParseTime(s string) (Time, error) {
	kind, rest, ok := strings.Cut(s, ":")
	if !ok {
		kind, rest = "fixed", s
	}
	d, err := parseKind(kind, rest)
	if err != nil {
		return nil, fmt.Errorf("distribution %q: %w", s, err)
	}
	return d, nil
}

func parseKind(kind, rest string) (Time, error) {
	switch kind {
	case "fixed":
		t, err := ParseFixed(rest)
		return Fixed(t), err
	case "exponential":
		t, err := ParseFixed(rest)
		return Exponential(t), err
	case "bimodal":
		return parseBimodal(rest)
	case "file":
		return readSamples(rest)
	}
	return nil, errors.New("it has to be " + Syntax)
}

func parseBimodal(s string) (b Bimodal, err error) {
	fields := strings.Split(s, ",")
	if len(fields) != 3 {
		return b, errors.New("it has to be bimodal:SHORT,LONG,SHARE-OF-LONG")
	}
	if b.Short, err = ParseFixed(fields[0]); err != nil {
		return b, err
	}
	if b.Long, err = ParseFixed(fields[1]); err != nil {
		return b, err
	}
	if b.P, err = strconv.ParseFloat(fields[2], 64); err != nil || !(b.P >= 0 && b.P <= 1) {
		return b, fmt.Errorf("the share of long ones, %q, is not between 0 and 1", fields[2])
	}
	return b, nil
}

// maxTime bounds one time, so that sums of millions do not overflow.
const maxTime = 10 * event.Second

// ParseFixed reads one time with a unit, such as 1.5us, or 0.
func ParseFixed(s string) (event.Time, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time with a unit: write 800ns or 1.5us", s)
	}
	if d < 0 || d > maxTime.Duration() {
		return 0, fmt.Errorf("the time %s is not between 0 and %v", s, maxTime.Duration())
	}
	return event.Of(d), nil
}

// maxSamples is how many times a file may have.
const maxSamples = 10_000_000

func readSamples(path string) (samples Samples, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		t, err := ParseFixed(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(samples) == maxSamples {
			return nil, fmt.Errorf("the file has more than %d times: take a sample of them", maxSamples)
		}
		samples = append(samples, t)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if samples == nil {
		return nil, errors.New("the file has no times")
	}
	return samples, nil
}
