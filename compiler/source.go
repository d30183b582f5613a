package compiler

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lambdanic/lambdanic/compiler/sandbox"
)

// Limits on the directory of a lambda.
const (
	MaxSource      = 4 << 20 // bytes of a packed source
	MaxSourceFiles = 256

	// Limits of names on Linux (linux/limits.h): the sandbox cannot make others. Its paths have a prefix.
	maxSourceName = 255
	maxSourcePath = 4000
)

// ErrSource says that a directory or a tar is not the source of a lambda.
var ErrSource = errors.New("bad source")

// PackSource packs the directory of a lambda into a tar: regular files only, sorted, and without owners and times, so that equal sources
// have equal tars. Files whose names begin with a dot are left out.
func PackSource(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir) // refuses symbolic links that lead out of it
	if err != nil {
		return nil, fmt.Errorf("pack source: %w", err)
	}
	defer root.Close()
	var files []sandbox.File
	total := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%w: %s is a %s: a source holds regular files only", ErrSource, name, kind(entry.Type()))
		}
		data, err := readFile(root, name, MaxSource-total)
		if err != nil {
			return err
		}
		total += len(data)
		files = append(files, sandbox.File{Path: name, Data: data})
		return checkSize(len(files), total)
	})
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	return writeTar(files)
}

func kind(mode fs.FileMode) string {
	if mode&fs.ModeSymlink != 0 {
		return "symbolic link"
	}
	return "special file"
}

func readFile(root *os.Root, name string, limit int) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte over the limit shows that the file is too large.
	return io.ReadAll(io.LimitReader(f, int64(limit)+1))
}

func checkSize(files, total int) error {
	if files > MaxSourceFiles {
		return fmt.Errorf("%w: more than %d files", ErrSource, MaxSourceFiles)
	}
	if total > MaxSource {
		return fmt.Errorf("%w: more than %d bytes", ErrSource, MaxSource)
	}
	return nil
}

func writeTar(files []sandbox.File) ([]byte, error) {
	slices.SortFunc(files, func(a, b sandbox.File) int { return strings.Compare(a.Path, b.Path) })
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: 0o644, Size: int64(len(f.Data))}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Path, err)
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return out.Bytes(), nil
}

// readSource lists the files in an untrusted tar.
func readSource(source []byte) ([]sandbox.File, error) {
	var files []sandbox.File
	seen := make(map[string]bool)
	total := 0
	r := tar.NewReader(bytes.NewReader(source))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSource, err)
		}
		name := strings.TrimPrefix(header.Name, "./") // as `tar -C DIR -c .` writes it
		switch {
		case header.Typeflag == tar.TypeDir:
			continue
		case header.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%w: %q is not a regular file", ErrSource, name)
		case !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\x00\n\\"):
			return nil, fmt.Errorf("%w: %q is not a path inside a lambda's directory", ErrSource, name)
		case len(name) > maxSourcePath || slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > maxSourceName }):
			return nil, fmt.Errorf("%w: %.40q... is too long: a name has up to %d bytes, a path up to %d", ErrSource, name, maxSourceName, maxSourcePath)
		case clashes(seen, name):
			return nil, fmt.Errorf("%w: %q stands twice", ErrSource, name)
		}
		data, err := io.ReadAll(io.LimitReader(r, int64(MaxSource-total)+1))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrSource, name, err)
		}
		total += len(data)
		files = append(files, sandbox.File{Path: name, Data: data})
		if err := checkSize(len(files), total); err != nil {
			return nil, err
		}
	}
}

// clashes notes name in isFile, and reports whether it was there already, as a file or as a directory.
func clashes(isFile map[string]bool, name string) bool {
	if _, twice := isFile[name]; twice {
		return true
	}
	isFile[name] = true
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if isFile[parent] {
			return true
		}
		isFile[parent] = false
	}
	return false
}

// UnpackSource writes the files in a tar made by PackSource into dir, which it makes. It writes nothing outside of dir.
func UnpackSource(source []byte, dir string) error {
	files, err := readSource(source)
	if err != nil {
		return fmt.Errorf("unpack source: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("unpack source: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack source: %w", err)
	}
	defer root.Close()
	for _, f := range files {
		if err := root.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return fmt.Errorf("unpack source: %w", err)
		}
		if err := root.WriteFile(f.Path, f.Data, 0o644); err != nil {
			return fmt.Errorf("unpack source: %w", err)
		}
	}
	return nil
}
