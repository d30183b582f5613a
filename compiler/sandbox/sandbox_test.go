package sandbox

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func shell(script string, files ...File) Command {
	return Command{
		Args:     []string{"/usr/bin/sh", "-c", script},
		ReadOnly: []string{"/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib/ld-linux-aarch64.so.1"},
		Files:    files,
		Dir:      "/tmp",
		Limits: Limits{ // limits that a test does not set only end a test that hangs
			Wall: 2 * time.Minute, CPU: time.Minute, Memory: 256 << 20, Scratch: 1 << 20, Output: 1 << 16, Processes: 8,
		},
	}
}

func TestRunGivesFilesAndTakesOutput(t *testing.T) {
	out, diag, err := Run(t.Context(), shell("cat /in/a /in/b; echo oops >&2", File{"/in/a", []byte("one")}, File{"/in/b", []byte("two")}))
	if err != nil || string(out) != "onetwo" || string(diag) != "oops\n" {
		t.Errorf("got %q, %q, %v", out, diag, err)
	}
}

func TestRunReportsExitStatus(t *testing.T) {
	_, _, err := Run(t.Context(), shell("exit 3"))
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Code != 3 {
		t.Errorf("got %v", err)
	}
}

// What the tool must not be able to see or do: the shell prints something if it can.
func TestRunHidesTheHost(t *testing.T) {
	secret := t.TempDir() + "/secret"
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"files of the host":  "cat /etc/passwd /etc/shadow " + secret + " 2>/dev/null",
		"processes":          "ls /proc 2>/dev/null",
		"devices":            "ls /dev 2>/dev/null",
		"network interfaces": "ls /sys/class/net 2>/dev/null",
		"write outside /tmp": "for d in / /in /usr; do (echo x > $d/new) 2>/dev/null && echo wrote $d; done; true",
		"change its input":   "(echo x > /in/a) 2>/dev/null && echo wrote",
		"environment":        "printf '%s' $HOME$USER$CPATH",
		"privilege":          "[ $(id -u) = 65437 ] || id -u",
		"user namespaces":    "unshare --user true 2>/dev/null && echo made one; true",
	} {
		t.Run(name, func(t *testing.T) {
			out, diag, err := Run(t.Context(), shell(script+"; echo end", File{"/in/a", nil}))
			if string(out) != "end\n" || err != nil {
				t.Errorf("got %q, %s, %v", out, diag, err)
			}
		})
	}
}

func TestRunKeepsLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		change func(*Limits)
		want   string
	}{
		"wall clock": {"sleep 1000", func(l *Limits) { l.Wall = 50 * time.Millisecond }, "not done after 50ms"},
		"CPU":        {"while :; do :; done", func(l *Limits) { l.CPU = time.Second }, "more than 1 s of CPU time"},
		"no memory":  {"kill -9 $$", func(*Limits) {}, "short of memory"}, // as the kernel kills when memory is short
		"output":     {"while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", func(*Limits) {}, "bytes of output"},
		"messages":   {"while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >&2; done", func(*Limits) {}, "bytes of output"},
	} {
		t.Run(name, func(t *testing.T) {
			c := shell(tc.script)
			tc.change(&c.Limits)
			if _, _, err := Run(t.Context(), c); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRunFillsNoDisk(t *testing.T) {
	out, diag, _ := Run(t.Context(), shell("cat /usr/bin/* > /tmp/big; wc -c < /tmp/big"))
	if n := strings.TrimSpace(string(out)); n != "1048576" {
		t.Errorf("wrote %s bytes into a scratch space of 1 MiB: %s", n, diag)
	}
}

func TestRunBoundsProcesses(t *testing.T) {
	out, _, _ := Run(t.Context(), shell("i=0; while [ $i -lt 40 ]; do sleep 1000 & i=$((i+1)); done 2>/dev/null; echo $i; kill -9 -1"))
	if strings.Contains(string(out), "40") {
		t.Error("40 processes ran at once, against a limit of 8")
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, _, err := Run(ctx, shell("sleep 1000")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRunReportsMissingTool(t *testing.T) {
	if _, _, err := Run(t.Context(), Command{Args: []string{"/nonexistent"}, Dir: "/", Limits: shell("").Limits}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestRunWithoutBubblewrapNamesThePackage(t *testing.T) {
	t.Setenv("PATH", "")
	if _, _, err := Run(t.Context(), shell("true")); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "bubblewrap") {
		t.Errorf("got %v", err)
	}
}
