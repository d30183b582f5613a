package nic

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
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/api/roce"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// maxQueuePairs is how many of the NIC's queue pairs one lambda may have.
const maxQueuePairs = 64

// rdma is the NIC's queue pairs and regions in our memory, which are all that there is of them: they live as long as the NIC
// program. A record is written while its first word says that there is none, and that word last (bpf/layout.h).
type rdma struct {
	memory  [][]byte
	qps     []rdmaLnQp
	regions []rdmaLnRegion
}

func mapRDMA(maps *rdmaMaps) (*rdma, error) {
	m := &rdma{}
	qps, err := m.mapped(maps.LnQps)
	if err != nil {
		return nil, err
	}
	regions, err := m.mapped(maps.LnRegions)
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	m.qps = unsafe.Slice((*rdmaLnQp)(qps), maps.LnQps.MaxEntries())
	m.regions = unsafe.Slice((*rdmaLnRegion)(regions), maps.LnRegions.MaxEntries())
	return m, nil
}

func (m *rdma) mapped(of *ebpf.Map) (unsafe.Pointer, error) {
	mem, err := unix.Mmap(of.FD(), 0, int(of.MaxEntries()*of.ValueSize()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the NIC's %v: %w", of, err)
	}
	m.memory = append(m.memory, mem)
	return unsafe.Pointer(&mem[0]), nil
}

func (m *rdma) close() error {
	var errs []error
	for _, mem := range m.memory {
		errs = append(errs, unix.Munmap(mem))
	}
	m.memory, m.qps, m.regions = nil, nil, nil
	return errors.Join(errs...)
}

// take zeroes the word by which packets find a record, and waits for the packet that found it before.
func take(word, claim *uint32) {
	atomic.StoreUint32(word, 0)
	for atomic.LoadUint32(claim) != 0 {
		runtime.Gosched()
	}
}

// revokeAll takes the regions of a slot away.
func (m *rdma) revokeAll(slot uint32) {
	for i := range m.regions {
		if r := &m.regions[i]; atomic.LoadUint32(&r.Key) != 0 && r.Slot == slot {
			take(&r.Key, &r.Claim)
		}
	}
}

// disconnect takes the queue pairs of a workload away.
func (m *rdma) disconnect(workload uint32) {
	for i := range m.qps {
		if q := &m.qps[i]; atomic.LoadUint32(&q.State) != 0 && q.Workload == workload {
			take(&q.State, &q.Claim)
		}
	}
}

// keepOnly takes away what is of no adopted revision that serves.
func (m *rdma) keepOnly(workloads map[uint32]*revision) {
	for i := range m.qps {
		if q := &m.qps[i]; workloads[q.Workload] == nil {
			take(&q.State, &q.Claim)
		}
	}
	for i := range m.regions {
		if r := &m.regions[i]; workloads[r.Workload] == nil || workloads[r.Workload].slot != r.Slot {
			take(&r.Key, &r.Claim)
		}
	}
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

// AddRegion registers memory of the lambda's running revision, for as long as that runs. Nobody who was not told can guess key and
// address.
func (n *NIC) AddRegion(_ context.Context, workload uint32, c api.RegionRequest) (*api.Region, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rev, err := n.served(workload)
	if err != nil {
		return nil, err
	}
	if c.Length == 0 {
		c.Length = api.Bytes(rev.rec.MessageMax)
	}
	if rev.rec.RegionCount == 0 {
		return nil, fmt.Errorf("%w: the lambda has no memory for regions: set message.regions in its spec", backend.ErrRDMA)
	}
	if c.Length > api.Bytes(rev.rec.MessageMax) {
		return nil, fmt.Errorf("%w: length: %d bytes are more than message.max, %d", backend.ErrRDMA, c.Length, rev.rec.MessageMax)
	}
	record, ok := n.rdma.freeRecord(rev)
	if !ok {
		return nil, fmt.Errorf("%w: all %d regions of the lambda are in use: remove one, or raise message.regions", backend.ErrRDMA, rev.rec.RegionCount)
	}
	i := slices.IndexFunc(n.rdma.regions, func(r rdmaLnRegion) bool { return r.Key == 0 && r.Claim == 0 })
	if i < 0 {
		return nil, fmt.Errorf("%w: all %d regions of the NIC are in use: remove one", backend.ErrRDMA, len(n.rdma.regions))
	}
	key := random32()&^(uint32(rootLnLimitLN_MAX_REGIONS)-1) | uint32(i)
	if key == 0 {
		key = uint32(rootLnLimitLN_MAX_REGIONS)
	}
	r := &n.rdma.regions[i]
	*r = rdmaLnRegion{
		Slot: rev.slot, Workload: workload, Revision: rev.rec.Revision, Base: address(), Length: uint32(c.Length), Record: record, Method: c.Method,
	}
	atomic.StoreUint32(&r.Key, key)
	return r.describe(), nil
}

// address is a random page of the lower half of a 48-bit address space, as a process's memory has.
func address() uint64 {
	return (uint64(random32())<<32|uint64(random32()))>>17&^0xfff | 1<<46
}

// freeRecord finds a record of the revision's that is no region yet.
func (m *rdma) freeRecord(rev *revision) (uint32, bool) {
	used := map[uint32]bool{}
	for i := range m.regions {
		if r := &m.regions[i]; r.Key != 0 && r.Slot == rev.slot {
			used[r.Record] = true
		}
	}
	for i := range uint32(rev.rec.RegionCount) {
		if record := uint32(rev.rec.RegionBase) + i; !used[record] {
			return record, true
		}
	}
	return 0, false
}

func (r *rdmaLnRegion) describe() *api.Region {
	return &api.Region{RKey: r.Key, Address: r.Base, Length: r.Length, Method: r.Method, Revision: r.Revision, Runs: r.Runs}
}

// Regions lists a workload's.
func (n *NIC) Regions(_ context.Context, workload uint32) ([]api.Region, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := n.served(workload); err != nil {
		return nil, err
	}
	list := []api.Region{}
	for i := range n.rdma.regions {
		if r := &n.rdma.regions[i]; r.Key != 0 && r.Workload == workload {
			list = append(list, *r.describe())
		}
	}
	return list, nil
}

// RemoveRegion revokes one: what is being written to it is refused from now on.
func (n *NIC) RemoveRegion(_ context.Context, workload, key uint32) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := &n.rdma.regions[key&(uint32(rootLnLimitLN_MAX_REGIONS)-1)]
	if key == 0 || r.Key != key || r.Workload != workload {
		return fmt.Errorf("%w region: key %#x: see `lambdanic rdma region list`", backend.ErrNoRDMA, key)
	}
	take(&r.Key, &r.Claim)
	return nil
}

func (n *NIC) served(workload uint32) (*revision, error) {
	if r := n.revision(workload); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("%w lambda: workload %#x does not run on this NIC", backend.ErrNoRDMA, workload)
}

// AddQueuePair makes the responder of a connection whose other half the peer has.
func (n *NIC) AddQueuePair(_ context.Context, workload uint32, c api.QueuePairRequest) (*api.QueuePair, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rev, err := n.served(workload)
	if err != nil {
		return nil, err
	}
	c.Peer = c.Peer.Unmap()
	if err := n.checkQueuePair(&c, rev); err != nil {
		return nil, fmt.Errorf("%w: %w", backend.ErrRDMA, err)
	}
	free, own := -1, 0
	for i := range n.rdma.qps {
		q := &n.rdma.qps[i]
		switch {
		case q.State != 0 && q.Workload == workload:
			own++
		case free < 0 && q.State == 0 && atomic.LoadUint32(&q.Claim) == 0:
			free = i
		}
	}
	if own >= maxQueuePairs || free < 0 {
		return nil, fmt.Errorf("%w: the lambda has %d queue pairs, of %d: remove one", backend.ErrRDMA, own, maxQueuePairs)
	}
	q := &n.rdma.qps[free]
	next := (q.Qpn + uint32(rootLnLimitLN_MAX_QPS)) & roce.NumMask &^ (uint32(rootLnLimitLN_MAX_QPS) - 1)
	if q.Qpn == 0 || next == 0 {
		next = random32()&roce.NumMask&^(uint32(rootLnLimitLN_MAX_QPS)-1) | uint32(rootLnLimitLN_MAX_QPS)
	}
	*q = rdmaLnQp{
		Qpn: next | uint32(free), PeerQpn: c.PeerQPN, Workload: workload, Service: services[c.Transport], Trust: flag(c.ICRC == api.ICRCTrust),
		Mtu: uint16(c.MTU), Receive: c.Receive, Psn: c.PSN, Ipv6: uint32(flag(c.Peer.Is6())),
	}
	copy(q.PeerAddr[:], c.Peer.AsSlice())
	atomic.StoreUint32(&q.State, uint32(rdmaLnQpStateLN_QP_READY))
	return n.describe(q), nil
}

var services = map[api.Transport]uint8{api.TransportRC: uint8(roce.ServiceRC), api.TransportUC: uint8(roce.ServiceUC)}

// checkQueuePair fills in what c leaves out, and refuses what cannot be.
func (n *NIC) checkQueuePair(c *api.QueuePairRequest, rev *revision) error {
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
	if rev.rec.Mode == uint32(rootLnModeLN_MODE_STREAM) {
		largest = 1024 // what the lambda sees of a packet is no more than λ-RPC's
	}
	own := n.reach.Load().Addr
	if c.Peer.Is6() {
		own = n.reach.Load().Addr6
	}
	_, known := services[c.Transport]
	switch {
	case !known:
		return fmt.Errorf("transport: %q is neither rc nor uc", c.Transport)
	case c.ICRC != api.ICRCCheck && c.ICRC != api.ICRCTrust:
		return fmt.Errorf("icrc: %q is neither check nor trust", c.ICRC)
	case c.MTU < roce.MinMTU || c.MTU > largest || c.MTU&(c.MTU-1) != 0:
		return fmt.Errorf("mtu: %d is no power of two from %d to %d", c.MTU, roce.MinMTU, largest)
	case !c.Peer.IsValid() || c.Peer.IsUnspecified() || c.Peer.IsMulticast() || c.Peer.Zone() != "":
		return fmt.Errorf("peer: %q is no host's IP address", c.Peer)
	case !own.IsValid():
		return fmt.Errorf("peer: the NIC has no address of %v's family", c.Peer)
	case c.PeerQPN > roce.NumMask || c.PSN > roce.NumMask:
		return fmt.Errorf("peer_qpn, psn: %#x and %#x have to fit into 24 bits", c.PeerQPN, c.PSN)
	case c.Receive != 0 && !n.rdma.isRegion(c.Receive, rev.rec.Workload):
		return fmt.Errorf("receive: there is no region with the key %#x", c.Receive)
	}
	return nil
}

func (m *rdma) isRegion(key, workload uint32) bool {
	r := &m.regions[key&(uint32(rootLnLimitLN_MAX_REGIONS)-1)]
	return r.Key == key && r.Workload == workload
}

func (n *NIC) describe(q *rdmaLnQp) *api.QueuePair {
	d := &api.QueuePair{
		QueuePairRequest: api.QueuePairRequest{
			Transport: api.TransportRC, PeerQPN: q.PeerQpn, PSN: q.Psn, MTU: int(q.Mtu), ICRC: api.ICRCCheck, Receive: q.Receive,
		},
		QPN: q.Qpn, Address: n.reach.Load().Addr, Broken: atomic.LoadUint32(&q.State) == uint32(rdmaLnQpStateLN_QP_ERROR), NextPSN: q.Psn,
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
		d.Peer, d.Address = netip.AddrFrom16(q.PeerAddr), n.reach.Load().Addr6
	}
	return d
}

// QueuePairs lists a workload's.
func (n *NIC) QueuePairs(_ context.Context, workload uint32) ([]api.QueuePair, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := n.served(workload); err != nil {
		return nil, err
	}
	list := []api.QueuePair{}
	for i := range n.rdma.qps {
		if q := &n.rdma.qps[i]; q.State != 0 && q.Workload == workload {
			list = append(list, *n.describe(q))
		}
	}
	return list, nil
}

// RemoveQueuePair takes one away: its packets are nobody's from now on.
func (n *NIC) RemoveQueuePair(_ context.Context, workload, qpn uint32) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := &n.rdma.qps[qpn&(uint32(rootLnLimitLN_MAX_QPS)-1)]
	if q.State == 0 || q.Qpn != qpn || q.Workload != workload {
		return fmt.Errorf("%w queue pair: %#x: see `lambdanic rdma qp list`", backend.ErrNoRDMA, qpn)
	}
	take(&q.State, &q.Claim)
	return nil
}
