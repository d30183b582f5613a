package manager

import (
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// A QuotaError says that a deploy would take a namespace over one of its quotas. Nothing of the deploy was done.
type QuotaError struct {
	Namespace string
	Quota     string // "lambdas" or "memory"
	Limit     uint64 // lambdas, or bytes of memory
	Used      uint64 // now
	Wanted    uint64 // after the deploy
}

func (e *QuotaError) Error() string {
	l := limitOf(e.Quota)
	return fmt.Sprintf("over quota: namespace %s may have %s and has %s, and with this deploy it would have %s: "+
		"remove functions (`lambdanic list -n %s`), or raise the quota: `lambdanic namespace set %s --%s %s`",
		e.Namespace, l.show(e.Limit), l.show(e.Used), l.show(e.Wanted), e.Namespace, e.Namespace, e.Quota, l.flag(e.Wanted))
}

// A limit is one quota that deploys keep to.
type limit struct {
	name  string // as api.Quota has it in JSON, and `lambdanic namespace set` as a flag
	quota func(*api.Quota) *uint64
	use   func(*api.NamespaceUse) uint64
	show  func(uint64) string
	flag  func(uint64) string // the least value of the flag that allows so much
}

var limits = []limit{
	{
		"lambdas",
		func(q *api.Quota) *uint64 { return q.Lambdas }, func(u *api.NamespaceUse) uint64 { return u.Lambdas },
		func(n uint64) string { return english.Plural(int(n), "lambda", "") }, func(n uint64) string { return fmt.Sprint(n) },
	},
	{
		"memory",
		func(q *api.Quota) *uint64 { return q.Memory }, func(u *api.NamespaceUse) uint64 { return u.Memory },
		func(n uint64) string { return exactly(n) + " of memory" }, func(n uint64) string { return fmt.Sprintf("%dKiB", (n+1023)>>10) },
	},
}

// exactly is a size as people read it, and in bytes where that rounds it.
func exactly(n uint64) string {
	text := humanize.IBytes(n)
	if read, err := humanize.ParseBytes(text); err != nil || read != n {
		text += fmt.Sprintf(" (%d bytes)", n)
	}
	return text
}

func limitOf(name string) *limit {
	for i := range limits {
		if limits[i].name == name {
			return &limits[i]
		}
	}
	panic("there is no quota " + name)
}

// useOf is what functions use together.
func useOf(fs []store.Function) (u api.NamespaceUse) {
	for i := range fs {
		u.Lambdas++
		u.Memory += fs[i].Memory
	}
	return u
}

// memory is what a function takes that an earlier version of the daemon recorded; 0 if that cannot be known.
func (m *Manager) memory(f *store.Function) uint64 {
	a, err := m.artifact(f.Artifact)
	if err != nil {
		m.Log.Warn("a function's memory does not count for its namespace's quota until it is deployed again", "function", f.Key(), "because", err)
		return 0
	}
	return a.Memory()
}

// over says which quotas are exceeded, as when one was set below what is in use.
func over(namespace string, q *api.Quota, u *api.NamespaceUse) (list []string) {
	for _, l := range limits {
		if most := l.quota(q); most != nil && l.use(u) > *most {
			list = append(list, fmt.Sprintf("namespace %s has %s, more than its quota of %s: all goes on, and what would take more is refused",
				namespace, l.show(l.use(u)), l.show(*most)))
		}
	}
	return list
}

// checkQuotas refuses new revisions that would take a namespace over its quota, or further over it. The revisions that they replace no
// longer count, though they still take memory while they drain.
func (m *Manager) checkQuotas(fs []store.Function) error {
	after := map[string][]store.Function{}
	for i := range fs {
		in := fs[i].Namespace
		if after[in] == nil {
			after[in] = m.wanted(in)
		}
		after[in] = replaced(after[in], &fs[i])
	}
	for namespace, list := range after {
		n, ok := m.namespace(namespace)
		if !ok {
			continue // so it has no quota
		}
		used, wanted := useOf(m.wanted(namespace)), useOf(list)
		for _, l := range limits {
			most := l.quota(&n.Quota)
			if most == nil || l.use(&wanted) <= *most || l.use(&wanted) <= l.use(&used) {
				continue
			}
			return &QuotaError{Namespace: namespace, Quota: l.name, Limit: *most, Used: l.use(&used), Wanted: l.use(&wanted)}
		}
	}
	return nil
}

// replaced is a list of functions with f in place of the revision before it.
func replaced(list []store.Function, f *store.Function) []store.Function {
	for i := range list {
		if list[i].Name == f.Name {
			list[i] = *f
			return list
		}
	}
	return append(list, *f)
}
