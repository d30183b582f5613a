package nic

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"

	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/module/stage"
	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/internal/veth"
)

// waiting are the packets that wait for the host now.
func waiting(t testing.TB, n *NIC) map[uint64]stage.Late {
	t.Helper()
	list := map[uint64]stage.Late{}
	var key uint64
	var late stage.Late
	for i := pinnedMap(t, n, "ln_waiting").Iterate(); i.Next(&key, &late); {
		list[key] = late
	}
	return list
}

func wantWaiting(t testing.TB, n *NIC, want int) {
	t.Helper()
	if got := len(waiting(t, n)); got != want {
		t.Fatalf("%d packets wait, want %d", got, want)
	}
}

// stageStats are the match stage's.
func stageStats(t testing.TB, n *NIC) backend.Stats {
	t.Helper()
	status, err := n.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range status {
		if s.Workload == stageID {
			return s.Stats
		}
	}
	t.Fatal("there is no match stage")
	return backend.Stats{}
}

// sendJob sends job 0.
func sendJob(t testing.TB, conn *net.UDPConn) {
	t.Helper()
	if _, err := conn.Write(make([]byte, 20)); err != nil {
		t.Fatal(err)
	}
}

// wantGrey reads the answer of the image transformer, which is the image's size.
func wantGrey(t testing.TB, conn *net.UDPConn) {
	t.Helper()
	answer, want := receive(t, conn), []byte{0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if !bytes.Equal(answer, want) {
		t.Errorf("answer %x, want %x", answer, want)
	}
}

// goOn does what pacer does with a packet that goes on later, and returns the action and the packet.
func goOn(t testing.TB, n *NIC, late stage.Late) (action string, frame []byte) {
	t.Helper()
	packet, err := binary.Append(nil, binary.NativeEndian, &late)
	if err != nil {
		t.Fatal(err)
	}
	packet = packet[:int(unsafe.Offsetof(late.Bytes))+int(late.Size)]
	context := make([]byte, 24) // struct xdp_md: the packet fills the whole of its data, and the interface is the fourth word
	binary.NativeEndian.PutUint32(context[4:], uint32(len(packet)))
	binary.NativeEndian.PutUint32(context[12:], uint32(n.rec.Index))
	opts := ebpf.RunOptions{Data: packet, DataOut: make([]byte, 4096), Context: context}
	err = veth.InNamed(n.rec.Namespace, func() error {
		verdict, err := n.prog.Half("stage").Programs["ln_later"].Run(&opts)
		action = verdicts[verdict]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if action == "drop" {
		return action, nil
	}
	if index := binary.NativeEndian.Uint32(opts.DataOut); int(index) != n.rec.Index {
		t.Errorf("it leaves by interface %d, want %d", index, n.rec.Index)
	}
	return action, opts.DataOut[4:]
}

// onlyOne is the packet that waits.
func onlyOne(t testing.TB, n *NIC) stage.Late {
	t.Helper()
	wantWaiting(t, n, 1)
	for _, late := range waiting(t, n) {
		return late
	}
	return stage.Late{}
}

// A packet whose run has to wait again stays as it came, waits no longer than before, and leaves once.
func TestWaitsOn(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, stageProgram(t, "image_transformer", stageID, 1))
	frame := jobFrame(t, 0, jobPort)
	if verdict, _ := inject(t, n, frame); verdict != "drop" {
		t.Fatalf("verdict %s", verdict)
	}
	first := onlyOne(t, n)
	if !bytes.Equal(first.Bytes[:first.Size], frame) {
		t.Errorf("it waits as %x", first.Bytes[:first.Size])
	}
	for range 3 {
		if action, _ := goOn(t, n, onlyOne(t, n)); action != "drop" {
			t.Fatalf("it goes on without a flag: %s", action)
		}
		if again := onlyOne(t, n); again != first {
			t.Errorf("now it waits as %x until %d, before as %x until %d", again.Bytes[:again.Size], again.Until, first.Bytes[:first.Size], first.Until)
		}
	}
	if err := n.WriteObject(t.Context(), stageID, "image_ready", []byte{1}); err != nil {
		t.Fatal(err)
	}
	if action, out := goOn(t, n, first); action != "reply" || !bytes.Equal(out[:6], frame[6:12]) || len(out) != len(frame) {
		t.Errorf("%s: %x", action, out)
	}
	if action, _ := goOn(t, n, first); action != "drop" {
		t.Errorf("it goes twice: %s", action)
	}
	wantWaiting(t, n, 0) // the lambda took its flag back, and would have waited again
	if got := stageStats(t, n); got.Requests != 1 || got.Replies != 1 || got.Drops != 0 {
		t.Errorf("counted %+v", got)
	}
}

// A request whose lambda waits is answered when the host writes what it waits for, and is counted like any other.
func TestStageWaitsForTheHost(t *testing.T) {
	for _, mode := range []Mode{ModeNative, ModeGeneric} {
		t.Run(string(mode), func(t *testing.T) {
			c := pacedConfig(t)
			c.Mode = mode
			n := open(t, c)
			deploy(t, n, stageProgram(t, "image_transformer", stageID, 1))
			shut(t, n)
			n = open(t, c) // also with an adopted NIC
			conn := jobSocket(t, n)
			sendJob(t, conn)
			eventually(t, "the request waits", func() bool { return len(waiting(t, n)) == 1 })

			wantError(t, n.WriteObject(t.Context(), stageID, "nothing", []byte{1}), "no such object: nothing: the lambda has image, image_ready, result, result_ready")
			wantError(t, n.WriteObject(t.Context(), stageID, "image_ready", []byte{1, 2}), "wrong size: object image_ready: 2 bytes for an object of 1")
			wantError(t, n.WriteObject(t.Context(), 0x99, "image_ready", []byte{1}), "does not run on this NIC")
			if err := n.WriteObject(t.Context(), stageID, "image", bytes.Repeat([]byte{1, 2, 3, 7}, 1<<16)); err != nil { // it waits on
				t.Fatal(err)
			}
			if got, want := stageStats(t, n), (backend.Stats{Requests: 1, BytesIn: 28}); got != want {
				t.Errorf("counted %+v, want %+v", got, want)
			}
			if err := n.WriteObject(t.Context(), stageID, "image_ready", []byte{1}); err != nil {
				t.Fatal(err)
			}
			wantGrey(t, conn)
			wantWaiting(t, n, 0)
			if got, want := stageStats(t, n), (backend.Stats{Requests: 1, BytesIn: 28, Replies: 1, BytesOut: 62}); got != want {
				t.Errorf("counted %+v, want %+v", got, want)
			}
			if grey, err := n.ReadObject(t.Context(), stageID, "result"); err != nil || !bytes.Equal(grey, bytes.Repeat([]byte{2}, 1<<16)) {
				t.Errorf("the image is not grey, or %v", err)
			}
		})
	}
}

// The host writes to the kernel's map while no daemon runs.
func TestWaitingOutlivesDaemon(t *testing.T) {
	config := pacedConfig(t)
	order := daemonOrder{Config: config, Stage: "image_transformer"}
	order.Config.Log = nil
	kill := startDaemon(t, order)
	rec, err := readRecord(config.recordPath())
	if err != nil || rec == nil {
		t.Fatalf("the daemon wrote no record: %v", err)
	}
	conn := jobSocketTo(t, rec.HostAddr, rec.Addr)
	sendJob(t, conn)
	kill()
	prog, err := ebpf.LoadPinnedProgram((&NIC{cfg: config}).progPin(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &revision{prog: prog}
	defer r.close()
	if err := r.writeObject("image_ready", []byte{1}); err != nil {
		t.Fatal(err)
	}
	wantGrey(t, conn)
}

// A packet whose wait times out is dropped and counted.
func TestWaitingExpires(t *testing.T) {
	n := open(t, pacedConfig(t))
	deploy(t, n, stageProgram(t, "image_transformer", stageID, 1))
	conn := jobSocket(t, n)
	const most, tick = 30 * time.Second, 10 * time.Millisecond // the clock here is coarse
	before := now(t)
	sendJob(t, conn)
	eventually(t, "the request waits", func() bool { return len(waiting(t, n)) == 1 })
	after := now(t)
	for key, late := range waiting(t, n) {
		if late.Until < before+uint64(most) || late.Until > after+uint64(most+tick) {
			t.Errorf("it came between %d and %d ns, and waits until %d", before, after, late.Until)
		}
		eventually(t, "its time is over", func() bool { // it may be running just now
			late.Until = 1
			_ = pinnedMap(t, n, "ln_waiting").Update(key, &late, ebpf.UpdateExist)
			return len(waiting(t, n)) == 0
		})
	}
	if got := counted(t, n, "timeouts"); got != 1 {
		t.Errorf("%d time-outs counted, want 1", got)
	}
	if got, want := stageStats(t, n), (backend.Stats{Requests: 1, BytesIn: 28, Drops: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	sendJob(t, conn) // there is room again
	eventually(t, "the next request waits", func() bool { return len(waiting(t, n)) == 1 })
	if err := n.WriteObject(t.Context(), stageID, "image_ready", []byte{1}); err != nil {
		t.Fatal(err)
	}
	wantGrey(t, conn)
}

// A new revision takes over waiting packets, and the old one goes.
func TestSwapWhileWaiting(t *testing.T) {
	n := open(t, pacedConfig(t))
	deploy(t, n, stageProgram(t, "image_transformer", stageID, 1))
	conn := jobSocket(t, n)
	sendJob(t, conn)
	eventually(t, "the request waits", func() bool { return len(waiting(t, n)) == 1 })
	deploy(t, n, stageProgram(t, "image_transformer", stageID, 2))
	eventually(t, "the old revision is gone", func() bool { return usage(n).slots == 1 })
	eventually(t, "it waits on", func() bool { return len(waiting(t, n)) == 1 }) // it may be running just now
	if err := n.WriteObject(t.Context(), stageID, "image_ready", []byte{1}); err != nil {
		t.Fatal(err)
	}
	wantGrey(t, conn)
	if got := stageStats(t, n); got.Replies != 1 {
		t.Errorf("the new revision counted %+v", got)
	}
}

// Packets that wait for a removed stage time out, even if another workload's stage has taken its place.
func TestRemoveWhileWaiting(t *testing.T) {
	n := open(t, pacedConfig(t))
	conn := jobSocket(t, n)
	for i, next := range [][]backend.Deployment{nil, {stageProgram(t, "image_transformer", 0x70007, 1)}} {
		deploy(t, n, stageProgram(t, "image_transformer", stageID, 1))
		sendJob(t, conn)
		eventually(t, "the request waits", func() bool { return len(waiting(t, n)) == 1 })
		if err := n.Remove(t.Context(), stageID); err != nil {
			t.Fatal(err)
		}
		deploy(t, n, next...)
		eventually(t, "it waits no longer", func() bool { return len(waiting(t, n)) == 0 })
		if got := counted(t, n, "timeouts"); got != uint64(i+1) {
			t.Errorf("%d time-outs counted, want %d", got, i+1)
		}
	}
}

// A repeated packet takes the place of the first, though IPv4 numbers it anew, and is answered once.
func TestResendWhileWaiting(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, stageProgram(t, "image_transformer", stageID, 1))
	for id := range uint16(3) {
		if verdict, _ := inject(t, n, numberedJob(t, 0, 5000, jobPort, id)); verdict != "drop" {
			t.Fatalf("verdict %s", verdict)
		}
		wantWaiting(t, n, 1)
	}
	if err := n.WriteObject(t.Context(), stageID, "image_ready", []byte{1}); err != nil {
		t.Fatal(err)
	}
	if verdict, out := inject(t, n, numberedJob(t, 0, 5000, jobPort, 9)); verdict != "reply" || out[14+5] != 9 {
		t.Errorf("verdict %s: %x", verdict, out)
	}
	wantWaiting(t, n, 0)
	if got := stageStats(t, n); got.Requests != 4 || got.Replies != 1 || got.Drops != 0 {
		t.Errorf("counted %+v", got)
	}
}

// As many packets wait as there is room for; one more is refused and counted, and none of the others is lost.
func TestWaitingIsBounded(t *testing.T) {
	const more = 16
	n := newTestNIC(t)
	deploy(t, n, stageProgram(t, "image_transformer", stageID, 1))
	for port := range layers.UDPPort(program.RootLnLimitLN_WAITING_MAX) + more {
		if verdict, _ := inject(t, n, numberedJob(t, 0, 6000+port, jobPort, 1)); verdict != "drop" {
			t.Fatalf("verdict %s", verdict)
		}
	}
	wantWaiting(t, n, int(program.RootLnLimitLN_WAITING_MAX))
	long := append(jobFrame(t, 0, jobPort), make([]byte, program.RootLnLimitLN_LATE_BYTES)...)
	if verdict, _ := inject(t, n, long); verdict != "drop" {
		t.Errorf("a packet that is too long to wait: verdict %s", verdict)
	}
	if got := counted(t, n, "busy"); got != more+1 {
		t.Errorf("%d refused, want %d", got, more+1)
	}
	if got := stageStats(t, n); got.Drops != more+1 {
		t.Errorf("counted %+v", got)
	}
}

// jobSocketTo is jobSocket for a NIC that another process has.
func jobSocketTo(t testing.TB, host, nic netip.Addr) *net.UDPConn {
	t.Helper()
	n := &NIC{}
	n.reach.Store(&module.Reach{HostAddr: host, Addr: nic})
	return jobSocket(t, n)
}
