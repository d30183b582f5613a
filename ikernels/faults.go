package ikernels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
)

// A Fault is what an ikernel could not go on with (faults.h). Its sockets are detached, and its registers stay. It is an unix.EIO.
type Fault struct {
	Ikernel string // its name
	Code    uint32
	Name    string // of the code, as "ring not found"
}

// Error implements error.
func (f *Fault) Error() string {
	return fmt.Sprintf("ikernel %s has faulted: %s (fault %d): destroy it, and create another", f.Ikernel, f.Name, f.Code)
}

// Unwrap says that it is an unix.EIO.
func (f *Fault) Unwrap() error { return unix.EIO }

// faultName is what a program calls a fault: what stands behind FAULT_ in the name of its enum's value.
func faultName(types *btf.Spec, code uint32) string {
	for _, enum := range []string{"ik_own_fault", "ik_fault_code"} {
		var e *btf.Enum
		if types.TypeByName(enum, &e) != nil {
			continue // it has no faults of its own
		}
		for _, v := range e.Values {
			if _, name, ok := strings.Cut(v.Name, "FAULT_"); ok && v.Value == uint64(code) {
				return strings.ReplaceAll(strings.ToLower(name), "_", " ")
			}
		}
	}
	return "one without a name"
}

// openFaults has ikernels wake the daemon when they fault.
func (h *Host) openFaults() (err error) {
	if h.events, err = ringbuf.NewReader(h.faults); err != nil {
		return kernel.Fails("does not tell of ikernels' faults", err)
	}
	h.watched = make(chan struct{})
	go func() {
		defer close(h.watched)
		for {
			event, err := h.events.Read()
			if err != nil {
				return // it is closed
			}
			h.mu.Lock()
			h.noticeNumber(binary.NativeEndian.Uint32(event.RawSample))
			h.mu.Unlock()
		}
	}()
	return nil
}

func (h *Host) closeFaults() error {
	if h.events == nil {
		return nil
	}
	err := h.events.Close()
	<-h.watched
	return err
}

// noticeNumber notices the fault of the ikernel of a number, if it is still there.
func (h *Host) noticeNumber(number uint32) {
	for k := range h.all {
		if k.number == number {
			_ = k.notice()
			return
		}
	}
}

// notice returns the ikernel's fault, if it has one. It detaches the sockets when it finds it.
func (k *Ikernel) notice() error {
	if k.fault != nil {
		return k.fault
	}
	var code uint32
	if err := k.coll.Variables["ik_faulted"].Get(&code); err != nil {
		return fmt.Errorf("look for a fault: %w", err)
	}
	if code == 0 {
		return nil
	}
	k.fault = &Fault{k.name, code, faultName(k.types, code)}
	k.leftover = errors.Join(k.leftover, k.host.leaveAll(k), k.tell())
	if k.host.onFault != nil {
		k.host.onFault(k.fault, k.owner)
	}
	return k.fault
}

// serves says why the ikernel cannot get datagrams: it is destroyed, or has faulted.
func (k *Ikernel) serves() error {
	if !k.host.all[k] {
		return errDestroyed
	}
	return k.notice()
}

// leaveAll detaches all sockets of an ikernel.
func (h *Host) leaveAll(k *Ikernel) error {
	var errs []error
	for i, p := range h.places {
		if p != nil && p.ikernel == k {
			errs = append(errs, h.leave(i))
		}
	}
	return errors.Join(append(errs, h.leaveStreams(k))...)
}

// OpenFault returns the application's end of a socket, which has the ikernel's fault as soon as there is one (wire.OperationFault). It ends with the ikernel.
func (k *Ikernel) OpenFault() (fd int, err error) {
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	if !k.host.all[k] {
		return -1, errDestroyed
	}
	if k.told != nil {
		return k.told[1], nil
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open where faults are told: %w", err)
	}
	k.told = &ends
	if err := k.notice(); k.fault == nil && err != nil {
		return -1, err
	}
	if k.fault != nil && !k.isTold {
		err = k.tell()
	}
	return ends[1], err
}

// tell tells the application of the fault, if it listens.
func (k *Ikernel) tell() error {
	if k.told == nil {
		return nil
	}
	k.isTold = true
	packet := append(binary.NativeEndian.AppendUint32(nil, k.fault.Code), k.fault.Error()...)
	if _, err := unix.Write(k.told[0], packet); err != nil {
		return fmt.Errorf("tell the application of a fault: %w", err)
	}
	return nil
}

// closeFault ends the socket for the fault: an application that waits learns that there will be none.
func (k *Ikernel) closeFault() error {
	if k.told == nil {
		return nil
	}
	return errors.Join(unix.Close(k.told[0]), unix.Close(k.told[1]))
}
