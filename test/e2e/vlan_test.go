package e2e

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
)

// tagged has all packets that leave the far end tagged with a VLAN, until untag is called, and takes the tags from those that arrive: as the kernel's VLAN
// devices do, which not every kernel has.
func (c cable) tagged(t *testing.T, id int32) (untag func()) {
	t.Helper()
	var links []link.Link
	c.atPeer(t, func() error {
		push := asm.Instructions{
			asm.Mov.Imm(asm.R2, unix.ETH_P_8021Q), asm.HostTo(asm.BE, asm.R2, asm.Half), asm.Mov.Imm(asm.R3, id), asm.FnSkbVlanPush.Call(),
			asm.Mov.Imm(asm.R0, 0), asm.Return(),
		}
		pop := asm.Instructions{asm.FnSkbVlanPop.Call(), asm.Mov.Imm(asm.R0, 0), asm.Return()}
		for at, code := range map[ebpf.AttachType]asm.Instructions{ebpf.AttachTCXEgress: push, ebpf.AttachTCXIngress: pop} {
			l, err := attachTC(code, at)
			if err != nil {
				return err
			}
			links = append(links, l)
		}
		return nil
	})
	return func() {
		for _, l := range links {
			_ = l.Close()
		}
	}
}

// attachTC attaches a program to the far end, in whose namespace the thread is.
func attachTC(code asm.Instructions, at ebpf.AttachType) (link.Link, error) {
	far, err := netlink.LinkByName(farEnd)
	if err != nil {
		return nil, err
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: code, License: "GPL"})
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	return link.AttachTCX(link.TCXOptions{Interface: far.Attrs().Index, Program: prog, Attach: at})
}

// Packets in tenants' VLANs reach each its own tenant's function, once their tags are in them (docs/tenants.md).
func TestVLAN(t *testing.T) {
	needRoot(t)
	i := newInstance(t)
	c := newCable(t, i)
	join(t, c.peer, farEnd)
	i.start("--nic", c.name, "--address", inNetwork)
	var functions []api.Function
	for _, tenant := range []string{"first", "second"} {
		i.run("deploy", "lambdas/web_server", "--target", string(api.TargetNIC), "-n", tenant)
		functions = append(functions, query[api.Function](i, "describe", "web_server", "-n", tenant))
	}
	i.run("namespace", "network", "add", "first", "vlan:100")
	i.run("namespace", "network", "add", "second", "vlan:4094")
	served := func(when string, which int) { // -1: none
		t.Helper()
		for n, f := range functions {
			limit := 100 * time.Millisecond
			if n == which {
				limit = patience
			}
			answer, err := callFrom(t, c.peer, f, "/hello", limit)
			if got := err == nil && string(answer) == hello; got != (n == which) {
				t.Errorf("%s: the function of tenant %d: %q, %v", when, n, answer, err)
			}
		}
	}
	served("in no VLAN", -1)
	untag := c.tagged(t, 100)
	served("in a VLAN whose tag is beside the packet", -1)
	untag()
	c.atPeer(t, func() error {
		if out, err := exec.CommandContext(t.Context(), "ethtool", "-K", farEnd, "txvlan", "off").CombinedOutput(); err != nil {
			return fmt.Errorf("ethtool: %w: %s", err, out)
		}
		return nil
	})
	for id, which := range map[int32]int{100: 0, 4094: 1, 101: -1} {
		untag := c.tagged(t, id)
		served(fmt.Sprint("in VLAN ", id), which)
		untag()
	}
}
