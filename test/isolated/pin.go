package isolated

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Pin keeps the goroutine on one CPU until it ends: what it sends comes in the order in which it is sent.
func Pin(t testing.TB, cpu int) {
	t.Helper()
	runtime.LockOSThread()
	var mine, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		t.Fatal(err)
	}
	for i, skip := 0, cpu%mine.Count(); ; i++ {
		if !mine.IsSet(i) {
			continue
		}
		if skip == 0 {
			one.Set(i)
			break
		}
		skip--
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
}
