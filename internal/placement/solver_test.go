package placement

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pair is an app of two microservices on a cluster of one server; the solution of its model is known.
func pair(t testing.TB) (*State, *Deployment) {
	t.Helper()
	topo, err := FatTree{Servers: 1, NICs: 1}.Topology()
	if err != nil {
		t.Fatal(err)
	}
	return added(t, topo, []Service{
		{Name: "a", Demand: Vector{Cores: 6000}, Kinds: []Kind{NIC}}, {Name: "b", Demand: Vector{Cores: 6000}, Kinds: []Kind{Host}},
	}, []Edge{{"a", "b", 1}})
}

// added is a cluster to which an app of these microservices was added.
func added(t testing.TB, topo *Topology, services []Service, edges []Edge) (*State, *Deployment) {
	t.Helper()
	app, err := NewApp("app", services, edges)
	if err != nil {
		t.Fatal(err)
	}
	s := NewState(topo)
	d, err := s.Add(app)
	if err != nil {
		t.Fatal(err)
	}
	return s, d
}

// fake has only a script for a solver, as the arguments of which the solution's path is the last one.
func fake(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if script != "" {
		script = "#!/bin/sh\nfor out; do :; done\n" + script
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func TestSolverFailures(t *testing.T) {
	for _, c := range []struct {
		script string
		want   error
		text   string
	}{
		{"", ErrNoSolver, "install the Debian package highs or coinor-cbc"},
		{`echo "Stopped on time - objective value 1e+50" >$out`, ErrTimeout, "allow it more"},
		{`echo "Infeasible - objective value 0" >$out`, ErrInfeasible, "no placement meets all constraints"},
		{`echo "Integer infeasible - objective value 0" >$out`, ErrInfeasible, ""},
		{`echo "Confused - objective value 0" >$out`, ErrAnswer, `its status is "Confused"`},
		{`echo nothing`, ErrAnswer, "it wrote no solution: nothing"},
		{`echo broken >&2; exit 3`, nil, "exit status 3: broken"},
		{`echo "Optimal - objective value x" >$out`, ErrAnswer, "objective"},
		{`echo "Optimal - objective value 1" >$out`, ErrAnswer, `microservice "a" has no node`},
		{`printf 'Optimal - objective value 1\n0 c0\n' >$out`, ErrAnswer, `line "0 c0"`},
		{`printf 'Optimal - objective value 1\n0 k0 1 0\n' >$out`, ErrAnswer, `column "k0"`},
		{`printf 'Optimal - objective value 1\n0 c0 one 0\n' >$out`, ErrAnswer, `column "c0"`},
		{`printf 'Optimal - objective value 1\n0 c0 0.5 0\n1 c1 1 0\n' >$out`, ErrAnswer, `microservice "a" is to be 0.5 times on node "server0/nic0"`},
		{`printf 'Optimal - objective value 1\n0 c0 1 0\n1 c1 1 0\n' >$out`, ErrAnswer, "it says that the cost is"},
		{`printf 'Optimal - objective value nan\n0 c0 1 0\n1 c1 1 0\n' >$out`, ErrAnswer, `objective: "nan" is not a finite number`},
		{`printf 'Optimal - objective value -inf\n0 c0 1 0\n1 c1 1 0\n' >$out`, ErrAnswer, `objective: "-inf" is not a finite number`},
		{`printf 'Optimal - objective value 1\n0 c0 1 0\n1 c1 1 0\n2 c2 nan 0\n' >$out`, ErrAnswer, `column "c2": "nan" is not a finite number`},
	} {
		fake(t, "cbc", c.script)
		s, d := pair(t)
		err := s.ILP(context.Background(), d, ILPOptions{})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v: %s", c.script, err, c.want, c.text)
		}
		if d.Node(0) != Nowhere {
			t.Errorf("%s: a microservice was placed", c.script)
		}
	}
	s, d := pair(t)
	if err := s.ILP(context.Background(), d, ILPOptions{Solver: "abacus"}); err == nil || !strings.Contains(err.Error(), "it has to be highs or cbc") {
		t.Errorf("got %v", err)
	}
}

// A solver that does not end is ended with the context.
func TestSolverStops(t *testing.T) {
	fake(t, "highs", `while :; do :; done`)
	s, d := pair(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.ILP(ctx, d, ILPOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// What HiGHS 1.16 wrote for two models of two columns.
const highsOptimal = `Model status
Optimal

# Primal solution values
Feasible
Objective 2.5
Objective_bound 2.5
MIP_rel_gap 0
# Columns 2
c0 0
c1 1
# Rows 2
r0 1
r1 1

# Dual solution values
None
`

const highsInfeasible = `Model status
Infeasible

# Primal solution values
None
`

func TestReadHiGHS(t *testing.T) {
	a, err := readHiGHS([]byte(highsOptimal))
	if err != nil || a.objective != 2.5 || a.values[0] != 0 || a.values[1] != 1 {
		t.Errorf("got %+v, %v", a, err)
	}
	if _, err := readHiGHS([]byte(highsInfeasible)); !errors.Is(err, ErrInfeasible) {
		t.Errorf("got %v", err)
	}
	if _, err := readHiGHS([]byte("Model status\nTime limit reached\n")); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
	for _, number := range []string{"nan", "inf", "-inf", "1e999"} {
		for _, was := range []string{"Objective 2.5", "c1 1"} {
			name, _, _ := strings.Cut(was, " ")
			if _, err := readHiGHS([]byte(strings.Replace(highsOptimal, was, name+" "+number, 1))); !errors.Is(err, ErrAnswer) {
				t.Errorf("%s %s: got %v", name, number, err)
			}
		}
	}
	if _, err := readHiGHS([]byte(highsOptimal[:strings.Index(highsOptimal, "c1")])); !errors.Is(err, ErrAnswer) {
		t.Errorf("got %v", err)
	}
}

// No answer makes the readers fail in another way than they say.
func FuzzReadSolution(f *testing.F) {
	f.Add([]byte(highsOptimal))
	f.Add([]byte(highsInfeasible))
	f.Add([]byte("Optimal - objective value 2.50000000\n      0 c0                     0                     1.5\n**    1 c1 1 2.5\n"))
	f.Add([]byte("Stopped on time - objective value 1e+50\n"))
	f.Fuzz(func(t *testing.T, solution []byte) {
		for _, s := range solvers {
			a, err := s.read(solution)
			if err == nil && a == nil || err != nil && !errors.Is(err, ErrAnswer) && !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrInfeasible) {
				t.Errorf("%s: %v, %v", s.name, a, err)
			}
		}
	})
}
