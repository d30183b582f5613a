// Package kernel says which Linux λ-NIC needs, after the running kernel has failed, and works around some kernels' wrong refusals.
// No kernel is refused for its number, so that older kernels with backported features work.
package kernel

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Oldest is the oldest Linux that λ-NIC is tested on.
const Oldest = "6.12"

// Issues is where defects are reported.
const Issues = "https://github.com/lambdanic/lambdanic/issues"

// Newer is the remedy for a feature that an older kernel lacks.
const Newer = "boot Linux " + Oldest + " or newer (Debian 13, or Debian 12 with linux-image-amd64 from bookworm-backports)"

// Defect is the remedy for a fault of λ-NIC itself.
const Defect = "this is a defect of λ-NIC: report it at " + Issues

// Error is something that a kernel fails to do for λ-NIC.
type Error struct {
	Release string // of the kernel, as uname(2) has it
	Fails   string // "does not take the NIC program"
	Cause   error
}

// Fails is an Error of the running kernel.
func Fails(what string, cause error) *Error {
	return &Error{Release: Release(), Fails: what, Cause: cause}
}

func (e *Error) Error() string { return e.Detail() + ": " + e.Remedy() }

func (e *Error) Unwrap() error { return e.Cause }

// Detail is the error without its remedy.
func (e *Error) Detail() string { return fmt.Sprintf("Linux %s %s (%v)", e.Release, e.Fails, e.Cause) }

// Remedy is a newer kernel, unless this one is new enough.
func (e *Error) Remedy() string {
	if Older(e.Release) {
		return Newer
	}
	return Defect
}

// Release names the running kernel.
func Release() string {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return "of an unknown release" // uname(2) fails only for a bad address
	}
	return unix.ByteSliceToString(uts.Release[:])
}

// Older says whether a release is before Oldest. An unreadable release is not: its number proves nothing.
func Older(release string) bool { return Before(release, Oldest) }

// Before says whether a release is before another one. An unreadable release is not.
func Before(release, other string) bool {
	got, err := parse(release)
	limit, _ := parse(other)
	return err == nil && (got.major < limit.major || got.major == limit.major && got.minor < limit.minor)
}

type version struct{ major, minor int }

func parse(release string) (v version, err error) {
	_, err = fmt.Sscanf(release, "%d.%d", &v.major, &v.minor)
	return v, err
}
