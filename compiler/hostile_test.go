package compiler

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler/check/native"
	"github.com/lambdanic/lambdanic/compiler/sandbox"
)

// A source whose library would run code when it is loaded is refused with what to remove.
func TestConstructorIsRefused(t *testing.T) {
	source := "#include \"lambda.h\"\nint probe" + body + " { return 0; }\n" +
		"#ifndef __bpf__\n__attribute__((constructor)) static void hang(void) { for (volatile int i = 1; i;) ; }\n#endif\n"
	_, err := Build(t.Context(), lambda(t, source), Options{})
	if !errors.Is(err, native.ErrForbidden) || !strings.Contains(err.Error(), "constructor") {
		t.Errorf("got %v", err)
	}
}

// Each source tries to read the host's files, or to exhaust its resources. The build fails, and neither its error nor an object file holds
// the secret.
func TestHostileSources(t *testing.T) {
	const secretText = "the-secret-of-this-host"
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(secretText+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	entry := "#include \"lambda.h\"\nint probe" + body + " { return 0; }\n"
	recursive := "#include \"probe.c\"\n"
	deep := "int probe" + body + " { return " + strings.Repeat("(", 200_000) + "0" + strings.Repeat(")", 200_000) + "; }\n"
	doubled := "#define A0 x x x x x x x x\n"
	for i := 1; i < 12; i++ {
		previous := fmt.Sprintf(" A%d", i-1)
		doubled += fmt.Sprintf("#define A%d%s\n", i, strings.Repeat(previous, 8))
	}
	for name, source := range map[string]string{
		"#include of a secret":      "#include \"" + secret + "\"\n" + entry,
		"#include of /etc/shadow":   "#include \"/etc/shadow\"\n" + entry,
		"#include upwards":          "#include \"../../../../../etc/passwd\"\n" + entry,
		"#include of a device":      "#include \"/dev/zero\"\n" + entry,
		"#include of a process":     "#include \"/proc/self/environ\"\n" + entry,
		"#embed":                    entry + "const unsigned char stolen[] = {\n#embed \"" + secret + "\"\n};\n",
		".incbin":                   entry + "asm(\".incbin \\\"" + secret + "\\\"\");\n",
		".include":                  entry + "asm(\".include \\\"" + secret + "\\\"\");\n",
		"endless inclusion":         recursive,
		"a macro of 8^12 words":     entry + doubled + "int y = sizeof(#A11) + A11;\n",
		"deep nesting":              "#include \"lambda.h\"\n" + deep,
		"huge output":               entry + "char huge[1u << 30] = {1};\n",
		"huge output by assembler":  entry + "asm(\".fill 1000000000, 8, 1\");\n",
		"linking a foreign library": entry + "#pragma comment(lib, \"curl\")\nint curl_easy_init(void);\nint y(void) { return curl_easy_init(); }\n",
		"a plugin's pragma":         "#pragma clang __debug crash\n" + entry,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Build(t.Context(), lambda(t, source), Options{})
			var failed *Error
			if !errors.As(err, &failed) && !errors.Is(err, sandbox.ErrLimit) && !errors.Is(err, ErrForbidden) {
				t.Fatalf("got %v", err)
			}
			text := err.Error()
			for _, leak := range []string{secretText, "root:", unitFile, "/tmp/", "Stack dump", "PLEASE submit"} {
				if strings.Contains(strings.ReplaceAll(text, secret, ""), leak) {
					t.Errorf("%q shows:\n%s", leak, text)
				}
			}
			if len(text) > 64<<10 {
				t.Errorf("an error of %d bytes", len(text))
			}
		})
	}
}

func TestPackSourceRefuses(t *testing.T) {
	for name, prepare := range map[string]func(dir string) error{
		"symbolic link out":  func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "x.h")) },
		"symbolic link in":   func(dir string) error { return os.Symlink("probe.c", filepath.Join(dir, "x.h")) },
		"directory link":     func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "x")) },
		"too large":          func(dir string) error { return os.WriteFile(filepath.Join(dir, "x"), make([]byte, MaxSource+1), 0o600) },
		"a file that is not": func(dir string) error { return os.Truncate(filepath.Join(dir, "probe.c"), 1<<40) },
		"too many": func(dir string) (err error) {
			for i := range MaxSourceFiles {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := lambda(t, "")
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := PackSource(dir); !errors.Is(err, ErrSource) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestUnpackSourceRefuses(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600} }
	for name, packed := range map[string][]byte{
		"upwards":       tarOf(t, file("../x")),
		"upwards later": tarOf(t, file("a/../../x")),
		"absolute":      tarOf(t, file("/tmp/x")),
		"symbolic link": tarOf(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "x", Linkname: "/etc/passwd"}),
		"hard link":     tarOf(t, tar.Header{Typeflag: tar.TypeLink, Name: "x", Linkname: "/etc/passwd"}),
		"device":        tarOf(t, tar.Header{Typeflag: tar.TypeChar, Name: "x"}),
		"twice":         tarOf(t, file("x"), file("x")),
		"file and dir":  tarOf(t, file("x"), file("x/y")),
		"dir and file":  tarOf(t, file("x/y"), file("x")),
		"too large":     tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: MaxSource + 1}),
		"newline":       tarOf(t, file("x\ny")),
		"long name":     tarOf(t, file("x/"+strings.Repeat("y", 256))),
		"long path":     tarOf(t, file(strings.Repeat("x/", 2000)+"y")),
		"not a tar":     []byte("not a tar, but long enough to be looked at"),
		"truncated":     tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: 5000})[:1000],
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "in")
			if err := UnpackSource(packed, dir); !errors.Is(err, ErrSource) {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("something was unpacked: %v", err)
			}
		})
	}
}

func TestSourceSurvivesPacking(t *testing.T) {
	dir := lambda(t, "text")
	if err := os.MkdirAll(filepath.Join(dir, "sub", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sub", "x.h"), []byte("more"), 0o600); err != nil {
		t.Fatal(err)
	}
	packed, err := PackSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := UnpackSource(packed, copied); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(copied, "sub", "x.h")); string(data) != "more" {
		t.Errorf("got %q, %v", data, err)
	}
	if again, err := PackSource(copied); err != nil || !bytes.Equal(again, packed) {
		t.Errorf("packed again it differs: %v", err)
	}
}

// Whatever a tar holds, unpacking writes only below its directory.
func FuzzUnpackSource(f *testing.F) {
	f.Add(tarOf(f, tar.Header{Typeflag: tar.TypeReg, Name: "a/b", Mode: 0o600, Size: 3}))
	f.Add(tarOf(f, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: ".."}))
	f.Fuzz(func(t *testing.T, packed []byte) {
		outer := t.TempDir()
		if err := UnpackSource(packed, filepath.Join(outer, "in")); err != nil {
			return
		}
		entries, err := os.ReadDir(outer)
		if err != nil || len(entries) != 1 {
			t.Errorf("wrote %v, %v", entries, err)
		}
		r := tar.NewReader(bytes.NewReader(packed))
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil || (h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir) {
				t.Fatalf("accepted %+v, %v", h, err)
			}
		}
	})
}
