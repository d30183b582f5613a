package api

import (
	"fmt"
	"slices"
	"strings"
)

// Target is a way to run lambdas. On target nic they are BPF programs; all others run the shared library that the compiler makes.
type Target string

// The targets that every version has.
const (
	TargetNIC     Target = "nic"
	TargetProcess Target = "process"
)

var targets = []Target{TargetNIC, TargetProcess}

// NewTarget makes name a target that specs may list. The package that runs lambdas there calls it while it is initialised (internal/backend).
func NewTarget(name string) Target {
	t := Target(name)
	if !slices.Contains(targets, t) {
		targets = append(targets, t)
	}
	return t
}

// Targets lists the targets that specs may list.
func Targets() []Target { return slices.Clone(targets) }

// Check fails where t is not a target, and names the targets.
func (t Target) Check() error {
	if slices.Contains(targets, t) {
		return nil
	}
	var names []string
	for _, known := range targets {
		names = append(names, fmt.Sprintf("%q", known))
	}
	last := len(names) - 1
	return fmt.Errorf("%q is not a target: use %s or %s", t, strings.Join(names[:last], ", "), names[last])
}
