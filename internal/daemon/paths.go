package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// DefaultInstance is the name of an instance without a given name.
const DefaultInstance = "default"

var instanceRE = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$`)

// maxSocketPath is what sockaddr_un holds (unix(7)), less the ending zero.
const maxSocketPath = 107

// Paths are where one instance keeps its files. Those below Data must survive; those below Run are valid until a reboot.
type Paths struct {
	Instance string
	Data     string
	Run      string
}

// NewPaths returns the paths of an instance. "" for a base directory is the usual place: the system's for root, and the
// user's own (XDG Base Directory Specification) for others.
func NewPaths(instance, dataBase, runBase string) (Paths, error) {
	if !instanceRE.MatchString(instance) {
		return Paths{}, fmt.Errorf("%q is not an instance name: use 1 to 32 lower-case letters, digits and -", instance)
	}
	if dataBase == "" {
		dataBase = usualData()
	}
	if runBase == "" {
		runBase = usualRun(dataBase)
	}
	p := Paths{Instance: instance}
	for into, base := range map[*string]string{&p.Data: dataBase, &p.Run: runBase} {
		abs, err := filepath.Abs(filepath.Join(base, instance))
		if err != nil {
			return p, fmt.Errorf("find directory %s: %w", base, err)
		}
		*into = abs
	}
	if longest := filepath.Join(p.storeSockets(), "client.sock"); len(longest) > maxSocketPath {
		return p, fmt.Errorf("%s is too long for a socket: give a shorter --run-dir", longest)
	}
	return p, nil
}

// Command is the command line that brings the instance up or down, by its verb.
func (p Paths) Command(verb string) string {
	command := "lambdanic " + verb + " --name " + p.Instance
	data, run := filepath.Dir(p.Data), filepath.Dir(p.Run)
	if data != usualData() {
		command += " --data-dir " + data
	}
	if run != usualRun(data) {
		command += " --run-dir " + run
	}
	return command
}

func usualData() string {
	if os.Getuid() == 0 {
		return "/var/lib/lambdanic"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "lambdanic")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "share", "lambdanic")
}

// systemRun is where root's instances keep files that are valid until a reboot.
const systemRun = "/run/lambdanic"

func usualRun(data string) string {
	if os.Getuid() == 0 {
		return systemRun
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "lambdanic")
	}
	return filepath.Join(data, "run")
}

// Socket is where the management API listens.
func (p Paths) Socket() string { return filepath.Join(p.Run, "lambdanic.sock") }

// Artifacts is where compiled lambdas lie.
func (p Paths) Artifacts() string { return filepath.Join(p.Data, "artifacts") }

// Log is where a detached daemon writes.
func (p Paths) Log() string { return filepath.Join(p.Data, "daemon.log") }

func (p Paths) lock() string         { return filepath.Join(p.Run, "lock") }
func (p Paths) store() string        { return filepath.Join(p.Data, "store") }
func (p Paths) storeSockets() string { return filepath.Join(p.Run, "store") }

// madeDirs are new directories, each before its parents.
type madeDirs []string

// makeDirs makes directories that only their owner can enter.
func makeDirs(dirs ...string) (made madeDirs, err error) {
	for _, dir := range dirs {
		for missing := dir; ; missing = filepath.Dir(missing) {
			if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
				break
			}
			made = append(made, missing)
		}
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.Chmod(dir, 0o700)
		}
		if err != nil {
			made.remove(dirs...)
			return nil, fmt.Errorf("make directory: %w: choose others with --data-dir and --run-dir", err)
		}
	}
	return made, nil
}

// remove removes what was made: dirs with their content, and empty parents.
func (m madeDirs) remove(dirs ...string) {
	for _, dir := range m {
		if slices.Contains(dirs, dir) {
			_ = os.RemoveAll(dir)
		} else {
			_ = os.Remove(dir)
		}
	}
}

// mayBeRoots says whether an instance that this user lacks may be root's.
func (p Paths) mayBeRoots() bool {
	if os.Getuid() == 0 {
		return false
	}
	_, err := os.Stat(filepath.Join(systemRun, p.Instance))
	return err == nil || errors.Is(err, os.ErrPermission)
}
