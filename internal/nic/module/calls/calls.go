// Package calls lets lambdas on the NIC call services (bpf/calls).
package calls

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/load"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

//go:generate go tool bpf2go -target bpfel -no-strip -no-global-types -type ln_call -type ln_service calls ../../../../bpf/calls/calls.bpf.c

var half = program.Half{
	Name: "calls", Object: _CallsBytes, Spec: loadCalls,
	Entries: map[string]program.Module{"ln_calls_module": program.RootLnModuleLN_MODULE_CALLS},
}

// Module is one NIC's.
type Module struct {
	module.Base
	Servers module.Ranges // of ln_services: one for each server of a revision's services
	nic     module.NIC
	maps    callsMaps
}

var _ module.Module = (*Module)(nil)

// Call is the record of a call in flight (bpf/layout.h).
type Call = callsLnCall

// Both packages divide a service's keys into the same number of shares.
var _ [backend.Shares]uint8 = callsLnService{}.Shares

// noService stands in a slot for a service that the spec does not name.
const noService = 0xff

var protocols = map[api.ServiceProtocol]uint8{
	api.ProtocolMemcached: uint8(program.RootLnProtocolLN_PROTOCOL_MEMCACHED),
	api.ProtocolRaw:       uint8(program.RootLnProtocolLN_PROTOCOL_RAW),
}

// Half is bpf/calls.
func (*Module) Half() *program.Half { return &half }

// Counters are of calls and their replies.
func (*Module) Counters() []module.Counter {
	return []module.Counter{
		{Index: program.RootLnCounterLN_COUNT_STRAY, Name: "stray", Help: "Replies that no external call waits for."},
		{Index: program.RootLnCounterLN_COUNT_FORGED, Name: "forged", Help: "Replies to an external call that did not come from its server."},
		{Index: program.RootLnCounterLN_COUNT_RETRIES, Name: "retries", Help: "External calls that were sent again."},
	}
}

// Open implements module.Module.
func (m *Module) Open(nic module.NIC, half *ebpf.Collection) error {
	m.nic = nic
	if err := half.Assign(&m.maps); err != nil {
		return err
	}
	m.Servers = module.NewRanges(0, m.maps.LnServices.MaxEntries())
	return nil
}

// Close implements module.Module.
func (m *Module) Close() error { return m.maps.Close() }

// Adopt implements module.Module.
func (m *Module) Adopt(r *module.Revision) {
	m.Servers.Mark(r.Record.ServiceBase, r.Record.ServiceCount, true)
}

// Check refuses a service that could never answer: replies of a server on a real NIC's own host go over loopback.
func (m *Module) Check(c *module.Change) error {
	site, own := m.nic.Site(), m.nic.Reach().Addrs
	for _, s := range c.Services {
		for _, server := range s.Servers {
			if a := server.Addr(); !site.Virtual && (slices.Contains(own, a) || a.IsLoopback()) {
				return fmt.Errorf("%w: service %s is on this host, whose replies never pass %s: use target process, or a virtual NIC",
					load.ErrRefused, s.Name, site.Interface)
			}
		}
	}
	return nil
}

// Take gives a revision a record for each server of its services, in their order.
func (m *Module) Take(c *module.Change) (err error) {
	r := &c.Next.Record
	var records []callsLnService
	for i := range r.First {
		r.First[i] = noService
	}
	for i, s := range c.Services {
		r.First[i] = uint8(len(records))
		records = append(records, serverRecords(s)...)
	}
	if len(records) == 0 {
		return nil
	}
	count := uint32(len(records))
	if r.ServiceBase, err = m.Servers.Take(count); err != nil {
		return fmt.Errorf("service records of the NIC: %w: remove a lambda", err)
	}
	r.ServiceCount = count
	for i := range records {
		if err := m.maps.LnServices.Put(r.ServiceBase+uint32(i), &records[i]); err != nil {
			return fmt.Errorf("write service record: %w", err)
		}
	}
	return nil
}

func serverRecords(s backend.Service) []callsLnService {
	var records []callsLnService
	for _, server := range s.Servers {
		rec := callsLnService{
			Port: networkOrder(server), Protocol: protocols[s.Protocol], TimeoutMs: uint32(time.Duration(s.Timeout).Milliseconds()),
			Retries: uint8(s.Retries), IdAt: uint16(s.ID.At), IdLen: uint8(s.ID.Bytes),
		}
		if server.Addr().Is6() {
			rec.Ipv6 = 1
		}
		copy(rec.Addr[:], server.Addr().AsSlice())
		records = append(records, rec)
	}
	if len(records) > 1 {
		records[0].Shares = s.Shares()
	}
	return records
}

func networkOrder(a netip.AddrPort) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, a.Port()))
}

// Free implements module.Module.
func (m *Module) Free(r *module.Revision) {
	m.Servers.Mark(r.Record.ServiceBase, r.Record.ServiceCount, false)
}

// Needed is true while calls of the revision are in flight.
func (m *Module) Needed(r *module.Revision) (bool, error) {
	if r.Record.ServiceCount == 0 {
		return false, nil
	}
	now, err := module.Now()
	if err != nil {
		return false, err
	}
	keys, values := make([]uint32, 4096), make([]Call, 4096)
	var cursor ebpf.MapBatchCursor
	for {
		got, err := m.maps.LnCalls.BatchLookup(&cursor, keys, values, nil)
		for _, c := range values[:got] {
			if c.State != 0 && c.Slot == r.Slot && now < end(&c)+1e9 {
				return true, nil
			}
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read call records: %w", err)
		}
	}
}

// end is when the last try of a call ends, in nanoseconds of the monotonic clock.
func end(c *Call) uint64 {
	return min(c.BeganNs+uint64(c.Retries+1)*uint64(c.TimeoutMs)*1e6, c.DeadlineNs)
}
