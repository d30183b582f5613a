// Package doctor says what a machine can and cannot do for λ-NIC, and why. It tries: a program is loaded, an
// interface is made, a tool is run, and finally a NIC comes up and a lambda answers on it. Nothing that it makes outlives the check.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/lambdanic/lambdanic/internal/kernel"
)

// Check is the result of one attempt.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // without it, lambdas cannot be compiled or cannot run on target nic
	Detail string `json:"detail"` // what was found, or why it failed
	Remedy string `json:"remedy,omitempty"`
}

type probe struct {
	name   string
	needed bool
	try    func(context.Context) (detail string, err error)
	remedy string // of a failure
}

const asRoot = "run as root: sudo lambdanic doctor"

// Run tries everything. The remedy of an earlier check may mend later ones.
func Run(ctx context.Context) []Check { return run(ctx, newTrial()) }

func run(ctx context.Context, last *trial) []Check {
	var checks []Check
	for _, probes := range [][]probe{system, bpf, tools} {
		for _, p := range probes {
			checks = append(checks, p.run(ctx))
		}
	}
	return append(checks, last.run(ctx)...)
}

func (p probe) run(ctx context.Context) Check {
	check := Check{Name: p.name, Needed: p.needed}
	detail, err := p.try(ctx)
	var fails *kernel.Error
	switch {
	case err == nil:
		check.OK, check.Detail = true, detail
	case errors.Is(err, os.ErrPermission) && os.Geteuid() != 0: // unknown without root
		check.Detail, check.Remedy = "not permitted", asRoot
	case errors.As(err, &fails):
		check.Detail, check.Remedy = fails.Detail(), fails.Remedy()
	default:
		check.Detail, check.Remedy = err.Error(), p.remedy
	}
	check.Detail = strings.ReplaceAll(check.Detail, "\n", "; ") // of joined errors
	return check
}

// Missing counts the checks that failed: those that are needed, and those that only cost a feature.
func Missing(checks []Check) (needed, optional int) {
	for _, c := range checks {
		switch {
		case c.OK:
		case c.Needed:
			needed++
		default:
			optional++
		}
	}
	return needed, optional
}

// WriteText writes the checks for a person.
func WriteText(w io.Writer, checks []Check) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.verdict(), c.Name, c.Detail)
		if c.Remedy != "" {
			fmt.Fprintf(table, "\t\t→ %s\n", c.Remedy)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", summary(checks))
	return err
}

func (c Check) verdict() string {
	switch {
	case c.OK:
		return "ok"
	case c.Needed:
		return "missing"
	default:
		return "absent"
	}
}

func summary(checks []Check) string {
	needed, optional := Missing(checks)
	switch {
	case needed == 0 && optional == 0:
		return "This machine can do everything."
	case needed == 0:
		return fmt.Sprintf("This machine can run lambdas on every target. Absent, and needed for a feature only: %d.", optional)
	default:
		return fmt.Sprintf("Missing, and needed: %d. Until then, lambdas can at best run on target process, and without the compiler on none.", needed)
	}
}

// WriteJSON writes the checks for a program.
func WriteJSON(w io.Writer, checks []Check) error {
	needed, _ := Missing(checks)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		OK     bool    `json:"ok"`
		Checks []Check `json:"checks"`
	}{needed == 0, checks})
}
