package process

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// A record is what a daemon needs to start the process again, and leaves for the next daemon.
type record struct {
	Workload uint32 `json:"workload"`
	Function string `json:"function"` // NAMESPACE/NAME, for people
	// Namespace is the namespace's number, 0 if it has none; nil in the record of an earlier version, whose process checks no tags.
	Namespace *uint32        `json:"namespace"`
	Revision  uint32         `json:"revision"`
	Listen    netip.AddrPort `json:"listen"`
	Control   string         `json:"control"` // control socket, in the directory of the record
	Object    string         `json:"object"`  // shared library, likewise
	Layouts   api.Layouts    `json:"layouts"` // of its state
	Args      []string       `json:"args"`
	// Services are the servers that it calls; nil in the record of an earlier version, whose process may send to anybody.
	Services []netip.AddrPort `json:"services"`
	PID      int              `json:"pid"`
	Start    uint64           `json:"start"` // in clock ticks after boot

	Deaths uint64 `json:"deaths,omitempty"` // of processes of this revision
	Death  string `json:"death,omitempty"`  // how the last one died
}

const recordFile = "record.json"

func (r record) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, recordFile), text, 0)
}

func readRecord(dir string) (r record, err error) {
	text, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", dir, err)
	}
	if r.Namespace == nil || r.Services == nil {
		return r, fmt.Errorf("%s: the record is of an earlier version", dir)
	}
	return r, nil
}

// writeFile writes a file as a whole or not at all, readable by us and a group.
func writeFile(path string, data []byte, group int) error {
	temp := path + ".new"
	err := os.WriteFile(temp, data, 0o640)
	if err == nil && os.Geteuid() == 0 {
		err = os.Chown(temp, 0, group)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		os.Remove(temp)
	}
	return err
}

// userOf gives each workload of each run directory a user of its own, so that lambdas cannot signal or trace each other. The
// range lies in one that systemd leaves free (systemd, UIDS-GIDS.md). On 4 of 1,000 machines with a thousand workloads, two
// workloads share a user.
func userOf(dir string) int {
	sum := sha256.Sum256([]byte(dir))
	return 0x70000000 + int(binary.BigEndian.Uint32(sum[:])&0x07ffffff)
}

// objectName depends on the content: after a store was lost, the same revision number may come again.
func objectName(d backend.Deployment) string {
	sum := sha256.Sum256(d.Native)
	return fmt.Sprintf("%d-%x.so", d.Revision, sum[:8])
}

// arguments are the settings that a process has for its whole life.
func arguments(cfg Config, d backend.Deployment) []string {
	spec, wait := d.Spec, "--block"
	if cfg.Spin {
		wait = "--spin"
	}
	args := []string{
		wait, "--threads", strconv.Itoa(cfg.Threads), "--workload", fmt.Sprint(d.Workload),
		"--mode", string(spec.Message.Mode), "--memory", fmt.Sprint(uint64(spec.Limits.Memory)),
		"--time", fmt.Sprint(max(1, time.Duration(spec.Limits.Time).Microseconds())),
	}
	if spec.Message.Mode != api.ModePacket {
		args = append(args, "--message-max", fmt.Sprint(uint64(spec.Message.Max)),
			"--in-flight", strconv.Itoa(spec.Message.InFlight),
			"--message-timeout", fmt.Sprint(time.Duration(spec.Message.Timeout).Milliseconds()))
	}
	if spec.Once {
		args = append(args, "--once")
	}
	for _, s := range d.Services {
		args = append(args, serviceArguments(s)...)
	}
	return args
}

// serviceArguments describe a service to lambda-host: how to call it, its servers, and the server of each share of the keys.
func serviceArguments(s backend.Service) []string {
	args := []string{"--service", fmt.Sprintf("%s,%d,%d,%d,%d", s.Protocol, time.Duration(s.Timeout).Milliseconds(), s.Retries,
		s.ID.At, s.ID.Bytes)}
	for _, addr := range s.Servers {
		args = append(args, "--server", addr.String())
	}
	if len(s.Servers) > 1 {
		shares := s.Shares()
		args = append(args, "--shares", hex.EncodeToString(shares[:]))
	}
	return args
}
