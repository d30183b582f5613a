package lambdanic_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// Bad options are refused before anything is opened, by whoever takes them.
func TestBadOptions(t *testing.T) {
	directory := lambdanic.NewDirectory("127.0.0.1:1")
	defer directory.Close()
	for name, opt := range map[string]lambdanic.Option{
		"no time":         lambdanic.WithTimeout(0),
		"negative time":   lambdanic.WithTimeout(-time.Second),
		"negative room":   lambdanic.WithReplyRoom(-1),
		"endless room":    lambdanic.WithReplyRoom(math.MaxInt),
		"negative reply":  lambdanic.WithMaxReply(-1),
		"endless replies": lambdanic.WithMaxReply(math.MaxInt),
	} {
		if c, err := lambdanic.Dial("127.0.0.1", opt); !errors.Is(err, lambdanic.ErrArgument) || c != nil {
			t.Errorf("dial with %s: %v", name, err)
		}
		if c, err := lambdanic.DialConn("127.0.0.1", opt); !errors.Is(err, lambdanic.ErrArgument) || c != nil {
			t.Errorf("dial a connection with %s: %v", name, err)
		}
		d := lambdanic.NewDirectory("127.0.0.1:1", lambdanic.WithOptions(opt))
		if _, err := d.Call(t.Context(), "echo", lambdanic.Request{}); !errors.Is(err, lambdanic.ErrArgument) {
			t.Errorf("call by name with %s: %v", name, err)
		}
		d.Close()
	}
	for _, address := range []string{"", ":1", "[::1", "host:x", "127.0.0.1:65536", "127.0.0.1:-1"} {
		if _, err := lambdanic.Dial(address); err == nil {
			t.Errorf("dial %q: no error", address)
		}
		if _, err := lambdanic.DialConn(address); err == nil {
			t.Errorf("dial a connection to %q: no error", address)
		}
	}
}

// Bad arguments of calls are refused before anything is sent, and a call that is on its way is answered.
func TestBadArguments(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	directory := lambdanic.NewDirectory("127.0.0.1:1")
	defer directory.Close()
	c := dial(t, s)
	arrived, answer := make(chan struct{}), make(chan error)
	r, w := io.Pipe()
	go func() {
		_, err := c.CallStream(t.Context(), lambdanic.Request{Workload: echoAssemble}, r, 5, io.Discard)
		answer <- err
	}()
	go func() {
		_, _ = w.Write([]byte("he"))
		close(arrived)
	}()
	<-arrived
	var none context.Context
	for _, k := range callers(t, s.Addr().String()) {
		if _, err := k.call(none, lambdanic.Request{}); !errors.Is(err, lambdanic.ErrArgument) {
			t.Errorf("%s: no context: %v", k.name, err)
		}
		for _, room := range []int{-1, math.MinInt} {
			if _, err := k.call(t.Context(), lambdanic.Request{Workload: echoPacket, ReplyRoom: room}); !errors.Is(err, lambdanic.ErrArgument) {
				t.Errorf("%s: room of %d: %v", k.name, room, err)
			}
		}
		check(t, k, lambdanic.Request{Workload: echoPacket, Body: text(9)})
	}
	for name, f := range map[string]func() error{
		"negative size": func() error {
			_, err := c.CallStream(t.Context(), lambdanic.Request{}, bytes.NewReader(nil), -1, io.Discard)
			return err
		},
		"no reader": func() error {
			_, err := c.CallStream(t.Context(), lambdanic.Request{}, nil, 1, io.Discard)
			return err
		},
		"no writer": func() error {
			_, err := c.CallStream(t.Context(), lambdanic.Request{}, bytes.NewReader(nil), 0, nil)
			return err
		},
		"name of a call": func() error { _, err := directory.Call(t.Context(), "", lambdanic.Request{}); return err },
		"name":           func() error { _, err := directory.Lookup(t.Context(), ""); return err },
		"room by name": func() error {
			_, err := directory.Call(t.Context(), "echo", lambdanic.Request{ReplyRoom: -1})
			return err
		},
		"context by name":     func() error { _, err := directory.Call(none, "echo", lambdanic.Request{}); return err },
		"context of a lookup": func() error { _, err := directory.Lookup(none, "echo"); return err },
	} {
		if err := f(); !errors.Is(err, lambdanic.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _ = w.Write([]byte("llo"))
	if err := <-answer; err != nil {
		t.Errorf("the call on its way: %v", err)
	}
}
