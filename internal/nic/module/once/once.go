// Package once lets the NIC execute requests of one packet at most once (bpf/once).
package once

import (
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

//go:generate go tool bpf2go -target bpfel -no-strip -no-global-types once ../../../../bpf/once/once.bpf.c

var half = program.Half{
	Name: "once", Object: _OnceBytes, Spec: loadOnce,
	Entries: map[string]program.Module{"ln_once_module": program.RootLnModuleLN_MODULE_ONCE},
}

// Module is one NIC's. Only the NIC program uses its records, which depend on client and request only, not on revisions.
type Module struct{ module.Base }

var _ module.Module = (*Module)(nil)

// Half is bpf/once.
func (*Module) Half() *program.Half { return &half }

// Take notes whether all requests are to be executed at most once. Others ask for it one by one.
func (*Module) Take(c *module.Change) error {
	if c.Spec.Once {
		c.Next.Record.Once = 1
	}
	return nil
}
