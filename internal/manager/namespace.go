package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

var (
	// ErrNoNamespace says that there is no namespace of that name.
	ErrNoNamespace = errors.New("no such namespace")
	// ErrInUse says that a namespace still has functions or ikernels, or that there is no room for what it is to get.
	ErrInUse = errors.New("in use")

	errNotInForce = errors.New("it is stored, but not yet in force")
)

var namespaceRE = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

func checkNamespace(name string) error {
	if !namespaceRE.MatchString(name) {
		return fmt.Errorf("%w: %q is not a namespace: use 1 to 63 lower-case letters, digits and -, beginning with a letter", ErrInvalid, name)
	}
	return nil
}

// Namespaces describes all namespaces, by name. The default one is always among them.
func (m *Manager) Namespaces(ctx context.Context) ([]api.Namespace, error) {
	accounts, err := m.Node.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	all := []api.Namespace{}
	for _, n := range m.knownNamespaces() {
		all = append(all, m.describeNamespace(&n, accounts))
	}
	return all, nil
}

// Namespace describes one namespace.
func (m *Manager) Namespace(ctx context.Context, name string) (*api.Namespace, error) {
	if err := checkNamespace(name); err != nil {
		return nil, err
	}
	n, ok := m.namespace(name)
	if !ok {
		return nil, noNamespace(name)
	}
	accounts, err := m.Node.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	described := m.describeNamespace(&n, accounts)
	return &described, nil
}

func noNamespace(name string) error {
	return fmt.Errorf("%w: %s: `lambdanic namespace list` names them all", ErrNoNamespace, name)
}

// knownNamespaces are those of the store, from memory, and the default one.
func (m *Manager) knownNamespaces() []store.Namespace {
	m.mu.RLock()
	all := slices.Collect(maps.Values(m.namespaces))
	m.mu.RUnlock()
	if n, ok := m.namespace(api.DefaultNamespace); ok && n.Number == 0 {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b store.Namespace) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// namespace returns what the store has of a namespace, from memory. The default one exists before the store has it.
func (m *Manager) namespace(name string) (n store.Namespace, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if n, ok = m.namespaces[name]; !ok && name == api.DefaultNamespace {
		return store.Namespace{Name: name}, true
	}
	return n, ok
}

func (m *Manager) setNamespace(n store.Namespace) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.namespaces[n.Name] = n
}

// learnNamespaces notes the namespaces that came to be with a deploy.
func (m *Manager) learnNamespaces(cs []*store.Function) {
	for _, c := range cs {
		if n, ok := m.namespace(c.Namespace); !ok || n.Number == 0 {
			m.setNamespace(store.Namespace{Name: c.Namespace, Number: c.NamespaceID})
		}
	}
}

func (m *Manager) describeNamespace(n *store.Namespace, accounts map[uint32]backend.Stats) api.Namespace {
	d := api.Namespace{Name: n.Name, Number: n.Number, Quota: n.Quota, Keys: describeKeys(&n.Keys), Networks: n.Networks, Use: useOf(m.wanted(n.Name))}
	d.Over = over(n.Name, &d.Quota, &d.Use)
	if accounts != nil {
		d.Stats = new(api.Stats)
		*d.Stats = accounts[n.Number]
	}
	return d
}

// SetQuota changes a namespace's quota, and makes the namespace if there is none of that name. What runs already goes on, also where that
// is more than the new quota: then the answer says so.
func (m *Manager) SetQuota(ctx context.Context, name string, change api.QuotaChange) (*api.Namespace, error) {
	if err := checkNamespace(name); err != nil {
		return nil, err
	}
	if w := change.Weight.To; w != nil && (*w < 1 || *w > api.MaxNamespaceWeight) {
		return nil, fmt.Errorf("%w: weight %d: use 1 to %d", ErrInvalid, *w, api.MaxNamespaceWeight)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.unlock()
	var n *store.Namespace
	err := write(ctx, func(ctx context.Context) (err error) {
		n, err = m.Store.ChangeQuota(ctx, name, change)
		return err
	})
	if err != nil {
		m.unsettled = m.unsettled || errors.Is(err, store.ErrUnknown)
		return nil, err
	}
	m.setNamespace(*n)
	m.Log.Info("set the quota of a namespace", "namespace", name, "lambdas", shown(n.Quota.Lambdas), "memory", shown(n.Quota.Memory),
		"requests/s", shown(n.Quota.Requests), "NIC time", shown(n.Quota.NICTime), "weight", n.Quota.ShareWeight())
	ctx, cancel := own(ctx, readLimit)
	defer cancel()
	if err := m.limit(ctx); err != nil {
		return nil, fmt.Errorf("the quota of namespace %s is stored, but not yet in force: %w: set it again", name, err)
	}
	return m.Namespace(ctx, name)
}

// Number is a namespace's number. The namespace is made if there is none of that name.
func (m *Manager) Number(ctx context.Context, name string) (uint32, error) {
	if n, ok := m.namespace(name); ok && n.Number != 0 {
		return n.Number, nil
	}
	n, err := m.SetQuota(ctx, name, api.QuotaChange{})
	if err != nil {
		return 0, err
	}
	return n.Number, nil
}

// KnownNumber is the number of a namespace that there is.
func (m *Manager) KnownNumber(ctx context.Context, name string) (uint32, error) {
	if _, ok := m.namespace(name); !ok {
		return 0, fmt.Errorf("%w: %q: `lambdanic namespace list` names them all, and `lambdanic namespace set NAME --weight 100` makes one", ErrNoNamespace, name)
	}
	return m.Number(ctx, name)
}

// changeNamespace makes a change of a namespace in the store, and has the node and the gateway follow.
func (m *Manager) changeNamespace(ctx context.Context, name string, first order, change func(context.Context) (*store.Namespace, error)) (*store.Namespace, error) {
	if err := checkNamespace(name); err != nil {
		return nil, err
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.unlock()
	n, err := change(ctx)
	if err != nil {
		m.unsettled = m.unsettled || errors.Is(err, store.ErrUnknown)
		return nil, err
	}
	if first == gatewayFirst {
		m.setNamespace(*n)
	}
	ctx, cancel := own(ctx, readLimit)
	defer cancel()
	if err := m.limit(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w: the next change of a namespace puts it in force", errNotInForce, err)
	}
	m.setNamespace(*n)
	return n, nil
}

// limit has the node follow a change of quotas. If it cannot, recover sees to that before the next change.
func (m *Manager) limit(ctx context.Context) error {
	err := m.Node.Limit(ctx)
	m.unsettled = m.unsettled || err != nil
	return err
}

// shown is a limit for the log.
func shown(limit *uint64) string {
	if limit == nil {
		return "unlimited"
	}
	return fmt.Sprint(*limit)
}

// RemoveNamespace forgets a namespace that has neither functions nor ikernels, with its quota and counters.
func (m *Manager) RemoveNamespace(ctx context.Context, name string) error {
	if err := checkNamespace(name); err != nil {
		return err
	}
	if name == api.DefaultNamespace {
		return fmt.Errorf("%w: namespace %s cannot be removed: it is that of functions that name none", ErrInvalid, name)
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.unlock()
	if _, ok := m.namespace(name); !ok {
		return noNamespace(name)
	}
	if n := len(m.wanted(name)); n > 0 {
		return fmt.Errorf("namespace %s is %w: it has %s: remove them first, see `lambdanic list -n %s`", name, ErrInUse, english.Plural(n, "function", ""), name)
	}
	if err := write(ctx, func(ctx context.Context) error { return m.Store.DeleteNamespace(ctx, name) }); err != nil {
		if n := store.HasIkernels(0); errors.As(err, &n) {
			return fmt.Errorf("namespace %s is %w: %w: detach them first, or end their applications: see `lambdanic ik list`", name, ErrInUse, n)
		}
		m.unsettled = m.unsettled || errors.Is(err, store.ErrUnknown)
		return err
	}
	m.mu.Lock()
	delete(m.namespaces, name)
	m.mu.Unlock()
	m.Log.Info("removed a namespace", "namespace", name)
	ctx, cancel := own(ctx, readLimit)
	defer cancel()
	if err := m.limit(ctx); err != nil {
		m.Log.Warn("the quota of a removed namespace is still in force", "namespace", name, "error", err)
	}
	return nil
}
