// Package rdma lets peers write into the memory of lambdas on the NIC, by RoCEv2 (bpf/rdma).
package rdma

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/api/roce"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/mapped"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

//go:generate go tool bpf2go -target bpfel -no-strip -no-global-types -type ln_qp_state -type ln_qp -type ln_region rdma ../../../../bpf/rdma/rdma.bpf.c

var half = program.Half{
	Name: "rdma", Object: _RdmaBytes, Spec: loadRdma,
	Entries: map[string]program.Module{
		"ln_rdma_module": program.RootLnModuleLN_MODULE_RDMA, "ln_regions_module": program.RootLnModuleLN_MODULE_REGIONS,
	},
	Constants: map[string]any{"ln_crc_tables": crcTables()},
}

// MaxQueuePairs is how many of the NIC's queue pairs one lambda may have.
const MaxQueuePairs = 64

// Module is one NIC's queue pairs and regions, in mapped memory. They are stored nowhere else, and live as long as the NIC program. A
// record is written while its first word marks it as free, and that word last (bpf/layout.h). Methods that are not module.Module's may
// be called at any time.
type Module struct {
	module.Base
	nic     module.NIC
	maps    rdmaMaps
	qps     []rdmaLnQp
	regions []rdmaLnRegion
}

var _ module.Module = (*Module)(nil)

var errRefused = fmt.Errorf("RDMA %w", backend.ErrResource)

// Half is bpf/rdma.
func (*Module) Half() *program.Half { return &half }

// Counters are of packets that no queue pair takes.
func (*Module) Counters() []module.Counter {
	return []module.Counter{
		{Index: program.RootLnCounterLN_COUNT_ALIEN, Name: "alien", Help: "RDMA packets that did not come from their queue pair's peer."},
	}
}

// Resources are a lambda's regions and queue pairs, by their keys and numbers.
func (m *Module) Resources() []backend.Resource {
	return []backend.Resource{
		backend.NewResource("rdma/regions", m.AddRegion, m.Regions, m.RemoveRegion),
		backend.NewResource("rdma/queue-pairs", m.AddQueuePair, m.QueuePairs, m.RemoveQueuePair),
	}
}

// Open implements module.Module.
func (m *Module) Open(nic module.NIC, half *ebpf.Collection) error {
	m.nic = nic
	if err := half.Assign(&m.maps); err != nil {
		return err
	}
	var err error
	if m.qps, err = mapped.Array[rdmaLnQp](m.maps.LnQps); err != nil {
		return err
	}
	m.regions, err = mapped.Array[rdmaLnRegion](m.maps.LnRegions)
	return err
}

// Close implements module.Module.
func (m *Module) Close() error {
	qps, regions := m.qps, m.regions
	m.qps, m.regions = nil, nil
	return errors.Join(mapped.Unmap(qps), mapped.Unmap(regions), m.maps.Close())
}

// Take reserves some of the revision's message records for regions.
func (m *Module) Take(c *module.Change) error {
	_, first := c.Spec.Message.Records()
	c.Next.Record.RegionBase, c.Next.Record.RegionCount = uint16(first), uint16(c.Spec.Message.Regions)
	return nil
}

// take zeroes the word by which packets find a record, and waits for a packet that has found it already.
func take(word, claim *uint32) {
	atomic.StoreUint32(word, 0)
	for atomic.LoadUint32(claim) != 0 {
		runtime.Gosched()
	}
}

// Superseded revokes the revision's regions: no peer can write to its memory any more.
func (m *Module) Superseded(rev *module.Revision) {
	for i := range m.regions {
		if r := &m.regions[i]; atomic.LoadUint32(&r.Key) != 0 && r.Slot == rev.Slot {
			take(&r.Key, &r.Claim)
		}
	}
}

// Removed removes the queue pairs of a workload.
func (m *Module) Removed(workload uint32) error {
	for i := range m.qps {
		if q := &m.qps[i]; atomic.LoadUint32(&q.State) != 0 && q.Workload == workload {
			take(&q.State, &q.Claim)
		}
	}
	return nil
}

// Adopted removes what belongs to no serving revision.
func (m *Module) Adopted() error {
	for i := range m.qps {
		if q := &m.qps[i]; m.nic.Serving(q.Workload) == nil {
			take(&q.State, &q.Claim)
		}
	}
	for i := range m.regions {
		r := &m.regions[i]
		if serving := m.nic.Serving(r.Workload); serving == nil || serving.Slot != r.Slot {
			take(&r.Key, &r.Claim)
		}
	}
	return nil
}

// crcTables are those of the NIC program's CRC-32: table i holds the CRCs of a byte with i zeros behind it.
func crcTables() (t [roce.CRCSlice][256]uint32) {
	t[0] = *crc32.IEEETable
	for i := 1; i < len(t); i++ {
		for b, crc := range t[i-1] {
			t[i][b] = t[0][crc&0xff] ^ crc>>8
		}
	}
	return t
}

func random32() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.NativeEndian.Uint32(b[:])
}

// AddRegion registers memory of the lambda's running revision, for as long as that runs. Key and address cannot be guessed.
func (m *Module) AddRegion(_ context.Context, workload uint32, c api.RegionRequest) (*api.Region, error) {
	defer m.nic.Hold()()
	rev, err := m.served(workload)
	if err != nil {
		return nil, err
	}
	if c.Length == 0 {
		c.Length = api.Bytes(rev.Record.MessageMax)
	}
	if rev.Record.RegionCount == 0 {
		return nil, fmt.Errorf("%w: the lambda has no memory for regions: set message.regions in its spec", errRefused)
	}
	if c.Length > api.Bytes(rev.Record.MessageMax) {
		return nil, fmt.Errorf("%w: length: %d bytes are more than message.max, %d", errRefused, c.Length, rev.Record.MessageMax)
	}
	record, ok := m.freeRecord(rev)
	if !ok {
		return nil, fmt.Errorf("%w: all %d regions of the lambda are in use: remove one, or raise message.regions", errRefused, rev.Record.RegionCount)
	}
	i := slices.IndexFunc(m.regions, func(r rdmaLnRegion) bool { return r.Key == 0 && r.Claim == 0 })
	if i < 0 {
		return nil, fmt.Errorf("%w: all %d regions of the NIC are in use: remove one", errRefused, len(m.regions))
	}
	key := random32()&^(uint32(program.RootLnLimitLN_MAX_REGIONS)-1) | uint32(i)
	if key == 0 {
		key = uint32(program.RootLnLimitLN_MAX_REGIONS)
	}
	r := &m.regions[i]
	*r = rdmaLnRegion{
		Slot: rev.Slot, Workload: workload, Revision: rev.Record.Revision, Base: address(), Length: uint32(c.Length), Record: record, Method: c.Method,
	}
	atomic.StoreUint32(&r.Key, key)
	return r.describe(), nil
}

// address is a random page in the lower half of a 48-bit address space, like those of a process.
func address() uint64 {
	return (uint64(random32())<<32|uint64(random32()))>>17&^0xfff | 1<<46
}

// freeRecord finds a record of the revision that is not a region yet.
func (m *Module) freeRecord(rev *module.Revision) (uint32, bool) {
	used := map[uint32]bool{}
	for i := range m.regions {
		if r := &m.regions[i]; r.Key != 0 && r.Slot == rev.Slot {
			used[r.Record] = true
		}
	}
	for i := range uint32(rev.Record.RegionCount) {
		if record := uint32(rev.Record.RegionBase) + i; !used[record] {
			return record, true
		}
	}
	return 0, false
}

func (r *rdmaLnRegion) describe() *api.Region {
	return &api.Region{RKey: r.Key, Address: r.Base, Length: r.Length, Method: r.Method, Revision: r.Revision, Runs: r.Runs}
}

// Regions lists a workload's.
func (m *Module) Regions(_ context.Context, workload uint32) ([]api.Region, error) {
	defer m.nic.Hold()()
	if _, err := m.served(workload); err != nil {
		return nil, err
	}
	list := []api.Region{}
	for i := range m.regions {
		if r := &m.regions[i]; r.Key != 0 && r.Workload == workload {
			list = append(list, *r.describe())
		}
	}
	return list, nil
}

// RemoveRegion revokes a region: further writes to it are refused.
func (m *Module) RemoveRegion(_ context.Context, workload, key uint32) error {
	defer m.nic.Hold()()
	r := m.region(workload, key)
	if r == nil {
		return fmt.Errorf("%w region: key %#x: see `lambdanic rdma region list`", backend.ErrNoResource, key)
	}
	take(&r.Key, &r.Claim)
	return nil
}

// region is a workload's region with that key, nil if it has none.
func (m *Module) region(workload, key uint32) *rdmaLnRegion {
	i := int(key & (uint32(program.RootLnLimitLN_MAX_REGIONS) - 1))
	if key == 0 || i >= len(m.regions) { // a closed NIC has no regions
		return nil
	}
	if r := &m.regions[i]; r.Key == key && r.Workload == workload {
		return r
	}
	return nil
}

func (m *Module) served(workload uint32) (*module.Revision, error) {
	if r := m.nic.Serving(workload); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("%w lambda: workload %#x does not run on this NIC", backend.ErrNoResource, workload)
}

// AddQueuePair makes the responder of a connection whose requester the peer has.
func (m *Module) AddQueuePair(_ context.Context, workload uint32, c api.QueuePairRequest) (*api.QueuePair, error) {
	defer m.nic.Hold()()
	rev, err := m.served(workload)
	if err != nil {
		return nil, err
	}
	c.Peer = c.Peer.Unmap()
	if err := m.checkQueuePair(&c, rev); err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	free, own := -1, 0
	for i := range m.qps {
		q := &m.qps[i]
		switch {
		case q.State != 0 && q.Workload == workload:
			own++
		case free < 0 && q.State == 0 && atomic.LoadUint32(&q.Claim) == 0:
			free = i
		}
	}
	if own >= MaxQueuePairs || free < 0 {
		return nil, fmt.Errorf("%w: the lambda has %d queue pairs, of %d: remove one", errRefused, own, MaxQueuePairs)
	}
	q := &m.qps[free]
	next := (q.Qpn + uint32(program.RootLnLimitLN_MAX_QPS)) & roce.NumMask &^ (uint32(program.RootLnLimitLN_MAX_QPS) - 1)
	if q.Qpn == 0 || next == 0 {
		next = random32()&roce.NumMask&^(uint32(program.RootLnLimitLN_MAX_QPS)-1) | uint32(program.RootLnLimitLN_MAX_QPS)
	}
	*q = rdmaLnQp{
		Qpn: next | uint32(free), PeerQpn: c.PeerQPN, Workload: workload, Service: services[c.Transport],
		Mtu: uint16(c.MTU), Receive: c.Receive, Psn: c.PSN,
	}
	if c.ICRC == api.ICRCTrust {
		q.Trust = 1
	}
	if c.Peer.Is6() {
		q.Ipv6 = 1
	}
	copy(q.PeerAddr[:], c.Peer.AsSlice())
	atomic.StoreUint32(&q.State, uint32(rdmaLnQpStateLN_QP_READY))
	return m.describe(q), nil
}

var services = map[api.Transport]uint8{api.TransportRC: uint8(roce.ServiceRC), api.TransportUC: uint8(roce.ServiceUC)}

// checkQueuePair fills in what c leaves out, and refuses invalid values.
func (m *Module) checkQueuePair(c *api.QueuePairRequest, rev *module.Revision) error {
	if c.Transport == "" {
		c.Transport = api.TransportRC
	}
	if c.ICRC == "" {
		c.ICRC = api.ICRCCheck
	}
	if c.MTU == 0 {
		c.MTU = 1024
	}
	largest := roce.MaxMTU
	if rev.Record.Mode == uint32(program.RootLnModeLN_MODE_STREAM) {
		largest = 1024 // the lambda gets no more of a packet than with λ-RPC
	}
	own := m.nic.Reach().Addr
	if c.Peer.Is6() {
		own = m.nic.Reach().Addr6
	}
	_, known := services[c.Transport]
	switch {
	case !known:
		return fmt.Errorf("transport: %q is neither rc nor uc", c.Transport)
	case c.ICRC != api.ICRCCheck && c.ICRC != api.ICRCTrust:
		return fmt.Errorf("icrc: %q is neither check nor trust", c.ICRC)
	case c.MTU < roce.MinMTU || c.MTU > largest || c.MTU&(c.MTU-1) != 0:
		return fmt.Errorf("mtu: %d is not a power of two from %d to %d", c.MTU, roce.MinMTU, largest)
	case !c.Peer.IsValid() || c.Peer.IsUnspecified() || c.Peer.IsMulticast() || c.Peer.Zone() != "":
		return fmt.Errorf("peer: %q is not the IP address of a host", c.Peer)
	case !own.IsValid():
		return fmt.Errorf("peer: the NIC has no address of %v's family", c.Peer)
	case c.PeerQPN > roce.NumMask || c.PSN > roce.NumMask:
		return fmt.Errorf("peer_qpn, psn: %#x and %#x have to fit into 24 bits", c.PeerQPN, c.PSN)
	case c.Receive != 0 && m.region(rev.Record.Workload, c.Receive) == nil:
		return fmt.Errorf("receive: there is no region with the key %#x", c.Receive)
	}
	return nil
}

func (m *Module) describe(q *rdmaLnQp) *api.QueuePair {
	d := &api.QueuePair{
		QueuePairRequest: api.QueuePairRequest{
			Transport: api.TransportRC, PeerQPN: q.PeerQpn, PSN: q.Psn, MTU: int(q.Mtu), ICRC: api.ICRCCheck, Receive: q.Receive,
		},
		QPN: q.Qpn, Address: m.nic.Reach().Addr, Broken: atomic.LoadUint32(&q.State) == uint32(rdmaLnQpStateLN_QP_ERROR), NextPSN: q.Psn,
		Packets: q.Packets, Bytes: q.Bytes, Messages: q.Messages, Repeated: q.Repeated, NAKs: q.Naks, Dropped: q.Dropped,
	}
	if q.Service == uint8(roce.ServiceUC) {
		d.Transport = api.TransportUC
	}
	if q.Trust != 0 {
		d.ICRC = api.ICRCTrust
	}
	d.Peer = netip.AddrFrom4([4]byte(q.PeerAddr[:]))
	if q.Ipv6 != 0 {
		d.Peer, d.Address = netip.AddrFrom16(q.PeerAddr), m.nic.Reach().Addr6
	}
	return d
}

// QueuePairs lists a workload's.
func (m *Module) QueuePairs(_ context.Context, workload uint32) ([]api.QueuePair, error) {
	defer m.nic.Hold()()
	if _, err := m.served(workload); err != nil {
		return nil, err
	}
	list := []api.QueuePair{}
	for i := range m.qps {
		if q := &m.qps[i]; q.State != 0 && q.Workload == workload {
			list = append(list, *m.describe(q))
		}
	}
	return list, nil
}

// RemoveQueuePair removes a queue pair: its packets are no longer taken.
func (m *Module) RemoveQueuePair(_ context.Context, workload, qpn uint32) error {
	defer m.nic.Hold()()
	i := int(qpn & (uint32(program.RootLnLimitLN_MAX_QPS) - 1))
	if i >= len(m.qps) || m.qps[i].State == 0 || m.qps[i].Qpn != qpn || m.qps[i].Workload != workload { // a closed NIC has no queue pairs
		return fmt.Errorf("%w queue pair: %#x: see `lambdanic rdma qp list`", backend.ErrNoResource, qpn)
	}
	take(&m.qps[i].State, &m.qps[i].Claim)
	return nil
}
