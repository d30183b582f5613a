package measure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// WithSource runs f with a directory that has a copy of the web server's source.
func WithSource(o Options, f func(dir string) error) (err error) {
	made, err := os.MkdirTemp("", "lambdanic-bench-")
	if err != nil {
		return fmt.Errorf("make directory of a source: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	dir := filepath.Join(made, "web_server")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(o.Lambdas, "web_server"))); err != nil {
		return fmt.Errorf("copy the source of web_server: %w", err)
	}
	return f(dir)
}

// Edit makes the source in dir a new one, if each call has another round.
func Edit(dir string, round int) error {
	f, err := os.OpenFile(filepath.Join(dir, "web_server.c"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("edit the source: %w", err)
	}
	// The constant is used, as otherwise the build would give the same artifact.
	_, err = fmt.Fprintf(f, "\n__attribute__((used)) static const int round_%d = %d;\n", round, round)
	return errors.Join(err, f.Close())
}

// Milliseconds is how many have passed since a moment.
func Milliseconds(since time.Time) float64 { return time.Since(since).Seconds() * 1e3 }
