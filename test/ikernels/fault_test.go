package ikernels

import (
	"bufio"
	"bytes"
	"testing"
)

// TestFault has an application in each language learn of its ikernel's fault, in each way that there is.
func TestFault(t *testing.T) {
	const text = "ikernel deserialize has faulted: impossible fields (fault 256): destroy it, and create another\n"
	const want = text + "the ring ends by a fault\n256: " + text + text + "fields 0\n"
	expectOutput(t, "fault", want)
}

// TestOutlivesDaemon ends the daemon while an application in each language waits for a message.
func TestOutlivesDaemon(t *testing.T) {
	for name, args := range programs("rings") {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			cmd := s.command(nil, append(args, s.path, "outlive")...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			s.in(cmd.Start)
			lines := bufio.NewScanner(out)
			for _, want := range []string{"ready", "the ring ends with the daemon", "no daemon"} {
				if !lines.Scan() || lines.Text() != want {
					t.Errorf("the application says %q, want %q", lines.Text(), want)
				}
				s.stop()
			}
			if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
				t.Errorf("%v\n%s", err, &stderr)
			}
		})
	}
}
