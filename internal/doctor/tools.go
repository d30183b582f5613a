package doctor

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

var tools = []probe{
	{"clang-19", true, version("clang-19", "--version"), "apt-get install clang-19"},
	{"lld-19", true, version("ld.lld-19", "--version"), "apt-get install lld-19"},
	{"sandbox", true, sandbox, "apt-get install bubblewrap; where it is installed, the kernel forbids user namespaces: run as root"},
	{"memcached", false, version("memcached", "--version"), "apt-get install memcached; the demo and the tests of kv_client use it"},
}

// version runs a tool, as its presence alone proves little, and keeps the first line of its output.
func version(tool string, args ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		out, err := exec.CommandContext(ctx, tool, args...).Output()
		if err != nil {
			return "", fmt.Errorf("run %s: %w", tool, err)
		}
		line, _, _ := strings.Cut(string(out), "\n")
		return line, nil
	}
}

// sandbox runs a program that has only /usr, and neither network nor other processes.
func sandbox(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr",
		"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "/usr/bin/true")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("run bwrap: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return "bwrap confines a program", nil
}
