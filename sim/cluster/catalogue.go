package cluster

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lambdanic/lambdanic/internal/placement"
)

//go:embed *.csv
var tables embed.FS

// Catalogue is what setups are made of.
type Catalogue struct {
	Services     []Service
	Systems      []System
	Applications []Application
	// Replaced names the rows of the catalogue whose place others took that were read later.
	Replaced []string
}

// Service is a kind of microservice, and how it was measured.
type Service struct {
	Name      string
	Stateful  bool
	Host, NIC Measured
}

// Measured is a processor at the most requests that it can serve (Table 1).
type Measured struct {
	Rate  float64 // requests/s
	Watts float64 // active: beyond those of the idle server
	Cores int     // that were active
}

// joules is the active energy of a request.
func (m *Measured) joules() float64 { return m.Watts / m.Rate }

// seconds is how long a core takes for a request.
func (m *Measured) seconds() float64 { return float64(m.Cores) / m.Rate }

func (s *Service) on(k placement.Kind) *Measured {
	if k == placement.NIC {
		return &s.NIC
	}
	return &s.Host
}

// System is a kind of server (Table 4).
type System struct {
	Name       string
	Cost       float64 // $
	Idle, Peak float64 // W, of all the server
	Bandwidth  float64 // Gb/s, of all its ports
	Host       Processor
	NICs       int
	NIC        Processor // each
}

// Processor is a host's or a NIC's.
type Processor struct {
	Cores  int
	Speed  float64 // of a core, relative to those of Measured
	Memory float64 // GiB
}

// Default is the paper's catalogue.
func Default() *Catalogue {
	c := new(Catalogue)
	for name, read := range map[string]func(io.Reader) error{"services.csv": c.ReadServices, "systems.csv": c.ReadSystems} {
		mustRead(name, read)
	}
	mustRead("applications.csv", c.readApplications)
	return c
}

func mustRead(name string, read func(io.Reader) error) {
	f, err := tables.Open(name)
	if err == nil {
		err = read(f)
	}
	if err != nil {
		panic(fmt.Sprintf("cluster: %s: %v", name, err))
	}
}

var serviceColumns = []string{"service", "stateful", "host_krps", "host_watts", "host_cores", "nic_krps", "nic_watts", "nic_cores"}

// ReadServices adds services, or replaces those of the same name (see Replaced), from CSV in the form of services.csv: a line with the columns'
// names, and one for each service, of different names. Lines that begin with # are comments.
func (c *Catalogue) ReadServices(r io.Reader) error {
	return readTable(r, serviceColumns, func(f *fields) {
		s := Service{Name: f.name(0), Stateful: f.number(1, 0, 1) == 1}
		s.Host = Measured{1000 * f.number(2, slowest, most), f.positive(3), f.count(4)}
		s.NIC = Measured{1000 * f.number(5, slowest, most), f.positive(6), f.count(7)}
		c.Services = set(c, c.Services, s, func(s Service) string { return s.Name })
	})
}

var systemColumns = []string{"system", "usd", "idle_watts", "peak_watts", "gbps", "host_cores", "host_speed", "host_gib", "nics", "nic_cores", "nic_gib"}

// ReadSystems adds systems, or replaces those of the same name, from CSV in the form of systems.csv.
func (c *Catalogue) ReadSystems(r io.Reader) error {
	return readTable(r, systemColumns, func(f *fields) {
		s := System{Name: f.name(0), Cost: f.positive(1), Idle: f.positive(2), Bandwidth: f.number(4, leastGbps, most)}
		s.Peak = f.number(3, s.Idle, most)
		if f.number(5, 0, maxCores) > 0 {
			s.Host = Processor{f.count(5), f.number(6, 0.01, 100), f.number(7, leastGiB, most)}
		}
		if s.NICs = int(f.number(8, 0, maxNICs)); s.NICs > 0 {
			s.NIC = Processor{f.count(9), 1, f.number(10, leastGiB, most)}
		}
		if s.Host.Cores == 0 && s.NICs == 0 {
			f.fail(errors.New("it has neither a host nor a NIC"))
		}
		c.Systems = set(c, c.Systems, s, func(s System) string { return s.Name })
	})
}

func (c *Catalogue) readApplications(r io.Reader) error {
	return readTable(r, []string{"application", "nodes", "graph"}, func(f *fields) {
		a, err := c.Application(f.record[2])
		if err != nil {
			f.fail(err)
			return
		}
		if a.Name = f.name(0); a.shards()*(1+backups) != f.count(1) {
			f.fail(fmt.Errorf("%s %s: its graph has %d shards with %d backups each", f.columns[1], f.record[1], a.shards(), backups))
		}
		c.Applications = append(c.Applications, *a)
	})
}

// set replaces what has the same name, or appends.
func set[T any](c *Catalogue, all []T, one T, name func(T) string) []T {
	if i := slices.IndexFunc(all, func(t T) bool { return strings.EqualFold(name(t), name(one)) }); i >= 0 {
		c.Replaced = append(c.Replaced, name(all[i]))
		all[i] = one
		return all
	}
	return append(all, one)
}

func (c *Catalogue) service(name string) (*Service, error) {
	var names []string
	for i := range c.Services {
		if strings.EqualFold(c.Services[i].Name, name) {
			return &c.Services[i], nil
		}
		names = append(names, c.Services[i].Name)
	}
	return nil, fmt.Errorf("service %q: it has to be one of %s", name, strings.Join(names, ", "))
}
