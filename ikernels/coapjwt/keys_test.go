package coapjwt

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
)

// TestKeyFiles has keys be refused, of which nothing is in the error.
func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	const secret = "0123456789abcdef0123456789abcdef"
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, path := range map[string]string{
		"no such file":         filepath.Join(dir, "none"),
		"is not a file":        dir,
		"fifo is not a file":   fifo,
		"chmod 600":            file("group", secret, 0o640),
		"has not 32 to 4096":   file("short", secret[1:]+"\n", 0o600),
		"4096 bytes, as keys":  file("long", strings.Repeat("x", 4097)+"\n", 0o600),
		"long has not 32 to":   filepath.Join(dir, "long"),
		"empty has not 32 to ": file("empty", "", 0o600),
	} {
		_, err := readKeys([]api.IkernelKey{{File: path}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "789abc") {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	good := api.IkernelKey{File: file("good", secret, 0o600)}
	for n, ok := range map[int]bool{0: false, 1: true, keysMax: true, keysMax + 1: false} {
		if _, err := readKeys(slices.Repeat([]api.IkernelKey{good}, n)); (err == nil) != ok {
			t.Errorf("%d keys: got %v", n, err)
		}
	}
	for content, want := range map[string]string{
		secret: secret, secret + "\n": secret, secret + "\n\n": secret + "\n", secret + "\r\n": secret + "\r",
		strings.Repeat("x", 4096) + "\n": strings.Repeat("x", 4096),
	} {
		got, err := readSecret(file("read", content, 0o600))
		if err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("%q is read as %q, %v", content, got, err)
		}
	}
}
