package doctor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/nic"
)

// leavesNothing fails the test if it leaves a file, a mount, a network namespace or an interface of the trial.
func leavesNothing(t *testing.T, trial *trial) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Cleanup(func() {
		if files, err := os.ReadDir(tmp); err != nil || len(files) > 0 {
			t.Errorf("left: %v (%v)", files, err)
		}
		if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), tmp) {
			t.Errorf("left: a mount below %s (%v)", tmp, err)
		}
		if ns, err := netns.GetFromName(filepath.Base(trial.dir)); err == nil {
			ns.Close()
			t.Errorf("left: network namespace %s", filepath.Base(trial.dir))
		}
		if trial.nic == nil {
			return
		}
		if _, err := netlink.LinkByName(trial.nic.HostEnd()); err == nil {
			t.Errorf("left: interface %s", trial.nic.HostEnd())
		}
	})
}

// altered writes a lambda of which one of the files is not what it should be.
func altered(file, from, to string) func(dir, name string) error {
	return func(dir, name string) error {
		if err := compiler.Scaffold(dir, name); err != nil {
			return err
		}
		file := filepath.Join(dir, file)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(file, bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o600)
	}
}

// What cannot be removed is named, whatever else failed.
func TestTrialLeavesAMount(t *testing.T) {
	var mount string
	trial := trial{mode: nic.ModeNative, write: func(dir, _ string) error {
		mount = dir
		return errors.Join(os.Mkdir(dir, 0o700), unix.Mount("none", dir, "tmpfs", 0, ""), errors.New("no lambda"))
	}}
	leavesNothing(t, &trial)
	checks := trial.run(t.Context())
	if len(checks) != 3 || checks[1].Detail != "build a lambda: no lambda" || checks[2].OK || checks[2].Needed ||
		!strings.Contains(checks[2].Detail, mount) || checks[2].Remedy != "remove by hand what is named" {
		t.Errorf("got %+v", checks)
	}
	if err := errors.Join(unix.Unmount(mount, 0), os.RemoveAll(trial.dir)); err != nil {
		t.Error(err)
	}
}

// The step that fails is named, with its remedy, and what the steps before it made is gone.
func TestTrialFails(t *testing.T) {
	const source, reply = "doctor.c", "return lambda_reply(headers, 0, len);"
	for name, c := range map[string]struct {
		mode          nic.Mode
		write         func(dir, name string) error
		program, call string // what is said of each, "" if it succeeds
		remedy        string
	}{
		"no NIC":   {"none", compiler.Scaffold, `mode "none" is unknown`, "no NIC to run it on", mendFirst},
		"no C":     {nic.ModeNative, altered(source, "return", "retrun"), "", "build a lambda", mendFirst},
		"wrong":    {nic.ModeNative, altered(api.ExamplesFile, "HELLO", "BYE"), "", `"HELLO, 2 WORLDS" instead of "BYE, 2 WORLDS"`, "report it at"},
		"fault":    {nic.ModeNative, altered(source, reply, "return RETURN_FAULT;"), "", "λ-RPC error 5", "report it at"},
		"no reply": {nic.ModeNative, altered(source, reply, "return RETURN_DROP;"), "", "packet filter", mendFirst},
	} {
		t.Run(name, func(t *testing.T) {
			trial := trial{mode: c.mode, write: c.write}
			leavesNothing(t, &trial)
			checks := trial.run(t.Context())
			for i, want := range []string{c.program, c.call} {
				got := checks[i]
				t.Logf("%+v", got)
				if got.OK != (want == "") || !strings.Contains(got.Detail, want) {
					t.Errorf("%s: %q, want %q", got.Name, got.Detail, want)
				}
				if !got.OK && !strings.Contains(got.Remedy, c.remedy) {
					t.Errorf("%s: remedy %q, want %q", got.Name, got.Remedy, c.remedy)
				}
			}
		})
	}
}
