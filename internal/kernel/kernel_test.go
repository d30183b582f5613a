package kernel

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
)

// An old kernel has to be replaced; a failure on any other is ours.
func TestRemedy(t *testing.T) {
	for release, want := range map[string]string{
		"6.1.0-44-amd64": Newer, "5.15.0": Newer, "6.9.7": Newer, "6.11.10-1": Newer,
		"6.12.0": Defect, "6.12.43+deb13-amd64": Defect, "6.18.44": Defect, "7.0-rc1": Defect, "10.0": Defect, "mystery": Defect,
	} {
		if got := (&Error{Release: release}).Remedy(); got != want {
			t.Errorf("Linux %s: %q, want %q", release, got, want)
		}
	}
}

func TestError(t *testing.T) {
	cause := errors.New("R1 is no pointer")
	err := &Error{Release: "6.1.0-44-amd64", Fails: "does not take the NIC program", Cause: cause}
	const want = "Linux 6.1.0-44-amd64 does not take the NIC program (R1 is no pointer): boot Linux 6.12 or newer " +
		"(Debian 13, or Debian 12 with linux-image-amd64 from bookworm-backports)"
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
}

func TestRelease(t *testing.T) {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(b)); Release() != want {
		t.Errorf("got %q, want %q", Release(), want)
	}
}

// The documents and the code name the same required versions.
func TestDocuments(t *testing.T) {
	module := read(t, "go.mod")
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(module)
	if goVersion == nil {
		t.Fatal("go.mod names no version of Go")
	}
	for _, file := range []string{"README.md", "CONTRIBUTING.md"} {
		text := read(t, file)
		for thing, want := range map[string]string{"Linux": Oldest, "Go": goVersion[1]} {
			named := regexp.MustCompile(`\b`+thing+`\s+(\d+\.\d+)`).FindAllStringSubmatch(text, -1)
			if named == nil {
				t.Errorf("%s does not say which %s is needed", file, thing)
			}
			for _, m := range named {
				if m[1] != want {
					t.Errorf("%s says %s, and %s %s is needed", file, m[0], thing, want)
				}
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
