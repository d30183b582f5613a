package nic

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// The two packages divide a service's keys alike.
var _ [backend.Shares]uint8 = rootLnService{}.Shares

// noService stands in a slot for a service that the spec does not name.
const noService = 0xff

var protocols = map[api.ServiceProtocol]uint8{
	api.ProtocolMemcached: uint8(rootLnProtocolLN_PROTOCOL_MEMCACHED),
	api.ProtocolRaw:       uint8(rootLnProtocolLN_PROTOCOL_RAW),
}

// checkServices refuses what could never be answered: the reply of a server on a real NIC's own host goes over loopback.
func (n *NIC) checkServices(d *backend.Deployment) error {
	own := func(a netip.Addr) bool { return slices.Contains(n.reach.Load().Addrs, a) || a.IsLoopback() }
	for _, s := range d.Services {
		for _, server := range s.Servers {
			if n.rec.HostEnd == "" && own(server.Addr()) {
				return fmt.Errorf("%w: service %s is on this host, whose replies never pass %s: use target process, or a virtual NIC",
					ErrRefused, s.Name, n.rec.Interface)
			}
		}
	}
	return nil
}

// reserveServices gives a revision a record for each server of its services, in their order.
func (n *NIC) reserveServices(r *revision, services []backend.Service) (err error) {
	var records []rootLnService
	for i := range r.rec.First {
		r.rec.First[i] = noService
	}
	for i, s := range services {
		r.rec.First[i] = uint8(len(records))
		records = append(records, serverRecords(s)...)
	}
	if len(records) == 0 {
		return nil
	}
	count := uint32(len(records))
	if r.rec.ServiceBase, err = n.services.take(count); err != nil {
		return fmt.Errorf("service records of the NIC: %w: remove a lambda", err)
	}
	r.rec.ServiceCount = count
	for i := range records {
		if err := n.prog.LnServices.Put(r.rec.ServiceBase+uint32(i), &records[i]); err != nil {
			return fmt.Errorf("write service record: %w", err)
		}
	}
	return nil
}

func serverRecords(s backend.Service) []rootLnService {
	var records []rootLnService
	for _, server := range s.Servers {
		rec := rootLnService{
			Port: binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, server.Port())), Ipv6: flag(server.Addr().Is6()),
			Protocol: protocols[s.Protocol], TimeoutMs: uint32(time.Duration(s.Timeout).Milliseconds()),
			Retries: uint8(s.Retries), IdAt: uint16(s.ID.At), IdLen: uint8(s.ID.Bytes),
		}
		copy(rec.Addr[:], server.Addr().AsSlice())
		records = append(records, rec)
	}
	if len(records) > 1 {
		records[0].Shares = s.Shares()
	}
	return records
}
