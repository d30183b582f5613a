package nic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/module/card"
	"github.com/lambdanic/lambdanic/test/packets"
)

const cardWorkload = 0x71000

// anInterface makes an interface that no NIC has.
func anInterface(t *testing.T) int {
	t.Helper()
	v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("lnc%d-%d", os.Getpid()%100000, instances.Add(1))}}
	v.PeerName = v.Name + "p"
	if err := netlink.LinkAdd(v); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netlink.LinkDel(v); err != nil {
			t.Error(err)
		}
	})
	return v.Index
}

// shout is a lambda that fits onto a card.
func shout(t *testing.T, workload, revision uint32, spec string) backend.Deployment {
	t.Helper()
	a, err := buildFiles(map[string][]byte{
		"shout.c": []byte(`#include "lambda.h"
int shout(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t *letter = payload(headers, 0, 1);
	if (!letter)
		return RETURN_FAULT;
	*letter ^= 'a' ^ 'A';
	return lambda_reply(headers, 0, 1);
}
`), api.SpecFile: []byte("name: shout\ntargets: [nic]\n" + spec),
	})
	if err != nil {
		t.Fatal(err)
	}
	return deployment(a, workload, revision)
}

// onTheCard runs the card's program, and returns the revision that its answer names; 0 without a program.
func onTheCard(t *testing.T, n *NIC, workload uint32) uint32 {
	t.Helper()
	l, err := link.LoadPinnedLink(filepath.Join(n.cfg.pins(), "card_link"), nil)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		t.Fatal(err)
	}
	prog, err := ebpf.NewProgramFromID(info.Program)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	f := packets.Frame{RPC: packets.RPC{Workload: "it", Request: 7, Payload: "x"}}
	frame, err := f.Build(map[string]uint32{"it": workload})
	if err != nil {
		t.Fatal(err)
	}
	copy(frame[30:34], n.rec.Addr.AsSlice()) // the destination; its checksum follows
	fixIPv4Sum(frame[14:34])
	run := ebpf.RunOptions{Data: frame, DataOut: make([]byte, 2048)}
	verdict, err := prog.Run(&run)
	if err != nil {
		t.Fatal(err)
	}
	const tx = 3
	if verdict != tx {
		t.Fatalf("the card's verdict is %d", verdict)
	}
	h, said, err := api.ParsePacket(run.DataOut[14+20+8:])
	if err != nil || string(said) != "X" {
		t.Errorf("the card answers %q, %v", said, err)
	}
	return h.Revision
}

func fixIPv4Sum(header []byte) {
	header[10], header[11] = 0, 0
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum))
}

// The life of a lambda on a card. An interface stands for the card; its program is loaded for no device. The lambda goes onto the card
// when it is deployed, is swapped, outlives the daemon, and comes off when it is removed or no longer asks for the card.
func TestCardLife(t *testing.T) {
	c := testConfig(t)
	c.Mode, c.card = ModeOffload, &card.Port{Interface: anInterface(t), Flags: link.XDPDriverMode}
	n, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	want := func(what string, revision uint32) {
		t.Helper()
		if got := onTheCard(t, n, cardWorkload); got != revision {
			t.Errorf("%s: revision %d is on the card, want %d", what, got, revision)
		}
	}
	again := func() {
		t.Helper()
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		if n, err = Up(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if !n.adopted {
			t.Error("the NIC was made anew")
		}
	}
	deploy(t, n, shout(t, cardWorkload, 1, ""))
	want("not asked for", 0)
	deploy(t, n, shout(t, cardWorkload, 2, "offload: true\n"))
	want("deployed", 2)
	deploy(t, n, shout(t, cardWorkload, 3, "offload: true\n"))
	want("swapped", 3)
	again()
	want("adopted", 3)

	err = n.Deploy(t.Context(), shout(t, cardWorkload+1, 1, "offload: true\n"))
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "the card runs one program") {
		t.Errorf("a second lambda: %v", err)
	}
	big := bundled(t, "web_server", cardWorkload, 4)
	big.Spec.Offload = true
	err = n.Deploy(t.Context(), big)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "--target nfp") {
		t.Errorf("what no card takes: %v", err)
	}
	want("refused", 3)

	deploy(t, n, shout(t, cardWorkload, 5, ""))
	want("no longer asked for", 0)
	deploy(t, n, shout(t, cardWorkload, 6, "offload: true\n"))
	want("deployed again", 6)
	if err := n.Remove(t.Context(), cardWorkload); err != nil {
		t.Fatal(err)
	}
	want("removed", 0)
	again()
	want("removed and adopted", 0)
}

// If the interface has no card, the kernel says so, and nothing is deployed.
func TestCardOfAnotherDriver(t *testing.T) {
	c := testConfig(t)
	index := anInterface(t)
	c.Mode, c.card = ModeOffload, &card.Port{Device: uint32(index), Interface: index, Flags: link.XDPOffloadMode}
	n, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	err = n.Deploy(t.Context(), shout(t, cardWorkload, 1, "offload: true\n"))
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "the device does not take the map") {
		t.Errorf("deploy: %v", err)
	}
	if n.revision(cardWorkload) != nil || len(n.loaded) > 0 {
		t.Error("it was deployed all the same")
	}
}
