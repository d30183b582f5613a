package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodSource = `#include "lambda.h"

int bad(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	return lambda_reply(headers, 0, match_data->payload_len);
}
`

// Each bad input is refused with an error that names what is wrong, and the running lambda never notices.
func TestBadLambda(t *testing.T) {
	i := up(t)
	i.run("deploy", "lambdas/web_server")
	for name, tc := range map[string]struct {
		spec, source string
		want         string // in the message
	}{
		"unknown field":     {"name: bad\ncolour: red\n", goodSource, "colour"},
		"bad name":          {"name: Bad Name\nentry: bad\nsource: bad.c\n", goodSource, "name"},
		"unknown target":    {"name: bad\ntargets: [toaster]\n", goodSource, "toaster"},
		"no source":         {"name: bad\n", "", "bad.c"},
		"source elsewhere":  {"name: bad\nsource: ../../etc/passwd\n", goodSource, "source"},
		"not YAML":          {"{{{", goodSource, "lambda.yml"},
		"does not compile":  {"name: bad\n", strings.Replace(goodSource, "payload_len", "nonsense", 1), "bad.c:5"},
		"reads other files": {"name: bad\n", "#include \"/etc/shadow\"\n" + goodSource, "/etc/shadow"},
		"does not verify": {"name: bad\ntargets: [nic]\n",
			strings.Replace(goodSource, "\treturn", "\t*(volatile int *)((long)headers + 4096) = 1;\n\treturn", 1), "bad.c"},
		"service without address": {"name: bad\nservices: [{name: memcached, protocol: memcached, address: nowhere}]\n",
			goodSource, "address"},
	} {
		t.Run(name, func(t *testing.T) {
			i := i.on(t)
			dir := t.TempDir()
			write(t, filepath.Join(dir, "lambda.yml"), tc.spec)
			if tc.source != "" {
				write(t, filepath.Join(dir, "bad.c"), tc.source)
			}
			i.refused(tc.want, "deploy", dir)
			if out, err := i.try("describe", "bad"); err == nil {
				t.Errorf("half made: %s", out)
			}
			i.expect("web_server", "0", "/hello", 200, hello)
		})
	}
}

// refused runs a command that must fail with a message that says want.
func (i *instance) refused(want string, args ...string) {
	i.t.Helper()
	out, err := i.try(args...)
	switch {
	case err == nil:
		i.t.Errorf("lambdanic %s: accepted\n%s", strings.Join(args, " "), out)
	case !strings.Contains(out, want):
		i.t.Errorf("lambdanic %s: the message does not say %q:\n%s", strings.Join(args, " "), want, out)
	case strings.Contains(out, "goroutine "):
		i.t.Errorf("lambdanic %s: panics:\n%s", strings.Join(args, " "), out)
	}
}

func TestBadCommand(t *testing.T) {
	i := up(t)
	i.refused("already", "up", "--detach", "--listen", freeAddr(t, "127.0.0.1"))
	i.refused("nothing", "deploy", "/nothing/here")
	i.refused("nothing", "invoke", "nothing")
	i.refused("nothing", "describe", "nothing")
	i.refused("nothing", "remove", "nothing")
	i.run("list")
}

func TestBadUp(t *testing.T) {
	needRoot(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	free := freeAddr(t, "127.0.0.1")
	for name, tc := range map[string]struct {
		want  string
		flags []string
	}{
		"no such interface": {"nosuch0", []string{"--listen", free, "--nic", "nosuch0"}},
		"port in use":       {busy.Addr().String(), []string{"--listen", busy.Addr().String()}},
		"no such mode":      {"sideways", []string{"--listen", free, "--mode", "sideways"}},
		"not an address":    {"--listen", []string{"--listen", "here"}},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstance(t)
			i.refused(tc.want, append([]string{"up", "--detach"}, tc.flags...)...)
			i.checkGone()
			i.refused("up", "list")
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
