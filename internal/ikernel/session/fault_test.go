package session

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// impossible is a note for deserialize that is a fault.
var impossible = note([]field{{"", 0}})

const faultText = "ikernel deserialize has faulted: impossible fields (fault 256): destroy it, and create another"

// TestFaultIsTold has an application learn of a fault in each of its ways. Then it can read, but attach nothing.
func TestFaultIsTold(t *testing.T) {
	d := deserialize(t, os.Getpagesize())
	if f, err := d.k.Fault(); f != nil || err != nil {
		t.Fatalf("got %v, %v before the fault", f, err)
	}
	read, waited := make(chan error), make(chan error)
	go func() {
		_, err := d.rings[0].Read()
		read <- err
	}()
	go func() {
		f, err := d.k.WaitFault(t.Context())
		waited <- errors.Join(f, err)
	}()
	if err := d.write(impossible); !errors.Is(err, unix.EIO) {
		t.Errorf("got %v", err)
	}
	for what, err := range map[string]error{"read": <-read, "wait": <-waited} {
		var f *lambdanic.Fault
		if !errors.As(err, &f) || *f != (lambdanic.Fault{Code: 256, Text: faultText}) || !errors.Is(err, unix.EIO) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if f, err := d.k.Fault(); err != nil || f == nil || f.Code != 256 {
		t.Errorf("got %v, %v", f, err)
	}
	if err := d.rings[0].SetReadDeadline(time.Time{}); err != nil {
		t.Error(err)
	}
	if _, err := d.rings[0].Read(); !errors.Is(err, unix.EIO) {
		t.Errorf("got %v for another read", err)
	}
	if _, ok := d.rings[0].Poll(); ok {
		t.Error("the ring has a message")
	}
	for what, err := range map[string]error{"attach": d.k.Attach(d.server), "detach": d.k.Detach(d.server)} {
		if want := faultText + " (input/output error)"; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", what, err, want)
		}
	}
	if r := d.registers(); r["fields"] != 0 {
		t.Errorf("the registers are %v", r)
	}
	if err := create(t, d.all, "echo").Attach(d.server); err != nil {
		t.Errorf("another ikernel: %v", err)
	}
	if err := d.k.Destroy(); err != nil {
		t.Error(err)
	}
	if f, err := d.k.Fault(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v, %v of an ikernel that is destroyed", f, err)
	}
}

// TestFaultUnderTraffic has an ikernel fault while its socket gets datagrams. All of them come, and what another ikernel of the application gets goes on.
func TestFaultUnderTraffic(t *testing.T) {
	const each = 500 // datagrams before and after the fault
	d := deserialize(t, os.Getpagesize())
	var sent, received atomic.Uint32
	client := d.dial()
	send := func() {
		for sent.Load() > received.Load()+50 && !t.Failed() {
			time.Sleep(time.Microsecond)
		}
		if _, err := client.Write([]byte(`{"i":1}`)); err != nil {
			t.Error(err)
		}
		sent.Add(1)
	}
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for b := make([]byte, 100); ; received.Add(1) {
			if _, err := d.server.Read(b); err != nil {
				return
			}
		}
	}()
	for range each {
		send()
	}
	faulted := make(chan error)
	go func() { faulted <- d.write(impossible) }()
	for err := error(nil); err == nil; {
		select {
		case err = <-faulted:
			if !errors.Is(err, unix.EIO) {
				t.Errorf("got %v", err)
			}
		default:
			send()
		}
	}
	for range each {
		send()
	}
	for deadline := time.Now().Add(patience); received.Load() < sent.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d datagrams came, of %d", received.Load(), sent.Load())
		}
	}
	_ = d.server.SetReadDeadline(time.Unix(1, 0))
	<-ended
}

// TestFaultNever waits for a fault that does not come.
func TestFaultNever(t *testing.T) {
	for name, end := range map[string]func(k *lambdanic.Ikernel, all *lambdanic.Ikernels, stop func()) error{
		"destroyed": func(k *lambdanic.Ikernel, _ *lambdanic.Ikernels, _ func()) error { return k.Destroy() },
		"closed":    func(_ *lambdanic.Ikernel, all *lambdanic.Ikernels, _ func()) error { return all.Close() },
		"no daemon": func(_ *lambdanic.Ikernel, _ *lambdanic.Ikernels, stop func()) error { stop(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			path, stop := serveUntil(t)
			all := open(t, path)
			k := create(t, all, "steering")
			rings, err := k.OpenRings(lambdanic.Rings{Count: 1, Size: os.Getpagesize()})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := k.WaitFault(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			read := make(chan error)
			go func() {
				_, err := rings[0].Read()
				read <- err
			}()
			if err := end(k, all, stop); err != nil {
				t.Fatal(err)
			}
			if f, err := k.WaitFault(t.Context()); f != nil || !errors.Is(err, os.ErrClosed) {
				t.Errorf("got %v, %v", f, err)
			}
			if err := <-read; !errors.Is(err, os.ErrClosed) {
				t.Errorf("got %v for a reader", err)
			}
		})
	}
}

// TestRingOutlivesDaemon ends the daemon while a ring has messages. They are read first.
func TestRingOutlivesDaemon(t *testing.T) {
	const messages = 10
	path, stop := serveUntil(t)
	k := create(t, open(t, path), "steering")
	rings, err := k.OpenRings(lambdanic.Rings{Count: 1, Size: os.Getpagesize()})
	if err != nil {
		t.Fatal(err)
	}
	server, client := pair(t)
	if err := k.Attach(server); err != nil {
		t.Fatal(err)
	}
	s := &steered{t: t, k: k}
	for i := range byte(messages) {
		s.send(client, []byte{i})
	}
	if posted, refused := s.settle(); posted != messages || refused != 0 {
		t.Fatalf("%d messages are posted and %d refused", posted, refused)
	}
	stop()
	if _, err := k.WaitFault(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
	for i := range byte(messages) {
		if m, err := rings[0].Read(); err != nil || len(m.Data) != 1 || m.Data[0] != i {
			t.Fatalf("got %q, %v, want message %d", m.Data, err, i)
		}
	}
	if _, err := rings[0].Read(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v after the last message", err)
	}
}
