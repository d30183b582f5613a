package nic

import (
	"errors"
	"iter"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/module/calls"
	"github.com/lambdanic/lambdanic/internal/nic/module/card"
	"github.com/lambdanic/lambdanic/internal/nic/module/messages"
	"github.com/lambdanic/lambdanic/internal/nic/module/once"
	"github.com/lambdanic/lambdanic/internal/nic/module/pacer"
	"github.com/lambdanic/lambdanic/internal/nic/module/rdma"
	"github.com/lambdanic/lambdanic/internal/nic/module/stage"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

// modules are a NIC's modules, in the order in which they are called.
type modules []module.Module

func newModules(c Config) modules {
	return append(modules{
		&messages.Module{},
		&once.Module{},
		&calls.Module{},
		&stage.Module{},
		&rdma.Module{},
		&card.Module{Stand: c.card},
		&pacer.Module{Binary: c.PacerBinary},
	}, c.more...)
}

// ModuleOf finds the module of one kind.
func ModuleOf[M module.Module](n *NIC) (found M) {
	for _, m := range n.modules {
		if m, ok := m.(M); ok {
			found = m
		}
	}
	return found
}

// Resources are what the NIC's lambdas have.
func (n *NIC) Resources() (list []backend.Resource) {
	for _, m := range n.modules {
		list = append(list, m.Resources()...)
	}
	return list
}

// halves are the modules' halves in the kernel.
func (m modules) halves() (list []*program.Half) {
	for _, one := range m {
		if h := one.Half(); h != nil {
			list = append(list, h)
		}
	}
	return list
}

// each calls f with all modules, and returns all errors.
func (m modules) each(f func(module.Module) error) error {
	var errs []error
	for _, one := range m {
		errs = append(errs, f(one))
	}
	return errors.Join(errs...)
}

// open gives the modules their maps and programs.
func (n *NIC) open() error {
	for _, m := range n.modules {
		var half *ebpf.Collection
		if h := m.Half(); h != nil {
			half = n.prog.Half(h.Name)
		}
		if err := m.Open(view{n}, half); err != nil {
			return err
		}
	}
	return nil
}

// view is the NIC as its modules see it.
type view struct{ n *NIC }

func (v view) Site() module.Site {
	s := v.n.cfg.site()
	s.Interface, s.Index, s.Namespace, s.Virtual = v.n.rec.Interface, v.n.rec.Index, v.n.rec.Namespace, v.n.rec.HostEnd != ""
	return s
}

func (v view) Reach() *module.Reach { return v.n.reach.Load() }

func (v view) Serving(workload uint32) *module.Revision {
	if r := v.n.revision(workload); r != nil {
		return &r.Revision
	}
	return nil
}

func (v view) AllServing() iter.Seq2[uint32, *module.Revision] {
	return func(yield func(uint32, *module.Revision) bool) {
		for workload, r := range *v.n.serving.Load() {
			if !yield(workload, &r.Revision) {
				return
			}
		}
	}
}

func (v view) Hold() func() {
	v.n.mu.Lock()
	return v.n.mu.Unlock
}

func (c Config) site() module.Site {
	return module.Site{
		Instance: c.Instance, RunDir: c.RunDir, Pins: c.pins(), Interface: c.Interface, Offload: c.Mode == ModeOffload, Log: c.Log,
	}
}
