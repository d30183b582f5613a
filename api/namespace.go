package api

import (
	"encoding/json"
	"fmt"
	"time"
)

// MaxNamespaces is how many namespaces an instance can have, and one more: the low bits of a namespace's number, below this power of
// two, are its index, and no namespace has index 0. The bits above count the uses of the index.
const MaxNamespaces = 1 << 12

// MaxNamespaceNetworks is how many networks a namespace can have.
const MaxNamespaceNetworks = 16

// Namespace is what GET, PUT and PATCH below /system/namespace/NAME answer: a tenant, what it may have and what it has.
type Namespace struct {
	Name   string `json:"name"`
	Number uint32 `json:"number,omitempty"` // by which NICs know it; 0: it had no lambda and no quota yet
	Quota  Quota  `json:"quota"`
	// Keys are those by which its packets are tagged; nil: it has none.
	Keys *NamespaceKeys `json:"keys,omitempty"`
	// Networks are those that belong to it, the latest last.
	Networks []Network    `json:"networks,omitempty"`
	Use      NamespaceUse `json:"use"`
	// Over says in words of which quotas there is more in use, and what that means.
	Over []string `json:"over,omitempty"`
	// Stats are the counters of its lambdas on NICs together, those of removed lambdas and of earlier revisions included. They begin at zero
	// when a NIC is made anew. nil: no NIC counts at present.
	Stats *Stats `json:"stats,omitempty"`
}

// Quota limits what may be deployed in a namespace, and what its lambdas may do on a NIC. A field is nil where there is no limit.
type Quota struct {
	Lambdas  *uint64 `json:"lambdas,omitempty"`
	Memory   *uint64 `json:"memory,omitempty"`   // bytes, as those of NamespaceUse
	Requests *uint64 `json:"requests,omitempty"` // per second
	NICTime  *uint64 `json:"nic_time,omitempty"` // nanoseconds per second that its lambdas run, on all CPUs together: 1e9 is one CPU
	// Weight is that of its share of a NIC's budget, from 1 to MaxNamespaceWeight, in proportion to those of all namespaces. nil: DefaultNamespaceWeight.
	Weight *uint64 `json:"weight,omitempty"`
}

// Weights, as those of control groups (Linux, cgroup v2).
const (
	DefaultNamespaceWeight = 100
	MaxNamespaceWeight     = 10_000
)

// NewNetwork is the body of POST /system/namespace/NAME/networks.
type NewNetwork struct {
	Network Network `json:"network"`
}

// NamespaceUse is how much of its quota a namespace uses.
type NamespaceUse struct {
	Lambdas uint64 `json:"lambdas"`
	Memory  uint64 `json:"memory"` // bytes: the sum of its functions' (Function.Memory)
}

// QuotaChange is the body of PATCH /system/namespace/NAME/quota, a merge patch (RFC 7396): what it lacks stays as it is, and null removes
// a limit.
type QuotaChange struct {
	Lambdas  LimitChange `json:"lambdas,omitzero"`
	Memory   LimitChange `json:"memory,omitzero"`
	Requests LimitChange `json:"requests,omitzero"`
	NICTime  LimitChange `json:"nic_time,omitzero"`
	Weight   LimitChange `json:"weight,omitzero"`
}

// LimitChange is one limit of a QuotaChange. The zero value leaves the limit as it is.
type LimitChange struct {
	Set bool
	To  *uint64 // nil: no limit
}

// SetLimit changes a limit.
func SetLimit(to uint64) LimitChange { return LimitChange{Set: true, To: &to} }

// NoLimit removes a limit.
func NoLimit() LimitChange { return LimitChange{Set: true} }

// IsZero tells json to leave the field out.
func (c LimitChange) IsZero() bool { return !c.Set }

// MarshalJSON implements json.Marshaler.
func (c LimitChange) MarshalJSON() ([]byte, error) { return json.Marshal(c.To) }

// UnmarshalJSON implements json.Unmarshaler. It is called for null as well.
func (c *LimitChange) UnmarshalJSON(text []byte) error {
	c.Set, c.To = true, nil
	if err := json.Unmarshal(text, &c.To); err != nil {
		return fmt.Errorf("%.40s is not a limit: write a whole number from 0 on, or null for no limit", text)
	}
	return nil
}

// apply makes the change.
func (c LimitChange) apply(limit **uint64) {
	if c.Set {
		*limit = c.To
	}
}

// Apply returns the quota after a change.
func (q Quota) Apply(c QuotaChange) Quota {
	c.Lambdas.apply(&q.Lambdas)
	c.Memory.apply(&q.Memory)
	c.Requests.apply(&q.Requests)
	c.NICTime.apply(&q.NICTime)
	c.Weight.apply(&q.Weight)
	return q
}

// ShareWeight is the weight of a namespace's share.
func (q *Quota) ShareWeight() uint64 {
	if q.Weight == nil {
		return DefaultNamespaceWeight
	}
	return *q.Weight
}

// SampleEvery is how many runs of lambdas there are on a CPU for each whose time is measured.
const SampleEvery = 64

// RunTime is about how long all runs took together: each that was measured stands for SampleEvery.
func (s *Stats) RunTime() time.Duration { return time.Duration(s.SampledNS * SampleEvery) }
