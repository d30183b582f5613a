package demux

import (
	"errors"

	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// attachRoot attaches a root of our own.
func (p *Port) attachRoot(index int, mode xdp.Mode) error {
	var objects demuxObjects
	spec, err := loadDemux()
	if err != nil {
		return err
	}
	xdp.Untie(spec)
	if err := spec.LoadAndAssign(&objects, nil); err != nil {
		return kernel.Fails("does not load the program that hands packets over to ikernels", err)
	}
	l, mode, err := xdp.Attach(objects.LnDemux, index, mode)
	if err != nil {
		return errors.Join(err, objects.Close())
	}
	closeAll := func() error { return errors.Join(l.Close(), objects.Close()) }
	info, err := objects.LnDemux.Info()
	if err != nil {
		return errors.Join(err, closeAll())
	}
	p.root, _ = info.ID()
	p.Mode = mode
	p.hold(&Root{
		Ikernels: objects.LnIkernels,
		Takes:    func(uint16) bool { return false },
		Attached: func() error { return xdp.Holds(l, index) },
		Close:    closeAll,
	})
	return nil
}
