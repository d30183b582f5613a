package placement

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// solver is a program that solves models.
type solver struct {
	name    string
	program string
	args    func(dir string, timeout time.Duration) []string
	read    func(solution []byte) (*answer, error)
}

const (
	modelFile    = "model.mps"
	solutionFile = "solution.txt"
	optionsFile  = "options.txt" // of HiGHS
)

// answer is a solution: the values of columns that are not 0, and the objective as written.
type answer struct {
	objective float64
	values    map[int]float64
}

var solvers = []solver{
	{name: "highs", args: highsArgs, read: readHiGHS},
	{name: "cbc", args: cbcArgs, read: readCBC},
}

func highsArgs(dir string, timeout time.Duration) []string {
	return []string{"--model_file", filepath.Join(dir, modelFile), "--solution_file", filepath.Join(dir, solutionFile),
		"--options_file", filepath.Join(dir, optionsFile), "--time_limit", seconds(timeout)}
}

func cbcArgs(dir string, timeout time.Duration) []string {
	return []string{filepath.Join(dir, modelFile), "-timeMode", "elapsed", "-sec", seconds(timeout), "-ratioGap", "0", "-allowableGap", "0",
		"-solve", "-solution", filepath.Join(dir, solutionFile)}
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

// findSolver finds a solver on the PATH: that of a name, or the first there is.
func findSolver(name string) (*solver, error) {
	known := false
	for i := range solvers {
		s := solvers[i]
		if name != "" && name != s.name {
			continue
		}
		known = true
		var err error
		if s.program, err = exec.LookPath(s.name); err == nil {
			return &s, nil
		}
	}
	if !known {
		return nil, fmt.Errorf("solver %q: it has to be highs or cbc", name)
	}
	return nil, ErrNoSolver
}

// grace is how much longer than its time limit a solver may take, to write what it has.
const grace = 2 * time.Second

func (s *solver) run(ctx context.Context, m *model, timeout time.Duration) (*answer, error) {
	dir, err := os.MkdirTemp("", "placement-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := writeModel(dir, m); err != nil {
		return nil, fmt.Errorf("write the model: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, timeout+grace)
	defer cancel()
	cmd := exec.CommandContext(limited, s.program, s.args(dir, timeout)...)
	cmd.WaitDelay = grace
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", s.name, ctx.Err())
	case limited.Err() != nil:
		return nil, fmt.Errorf("%s: %w", s.name, ErrTimeout)
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %s", s.program, err, lastLine(out))
	}
	solution, err := os.ReadFile(filepath.Join(dir, solutionFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: it wrote no solution: %s", s.name, ErrAnswer, lastLine(out))
	}
	a, err := s.read(solution)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return a, nil
}

func writeModel(dir string, m *model) error {
	if err := os.WriteFile(filepath.Join(dir, optionsFile), []byte("mip_rel_gap = 0\nmip_abs_gap = 0\n"), 0o600); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, modelFile))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := m.write(f); err != nil {
		return err
	}
	return f.Close()
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// status turns what a solver says of its end into an error.
func status(text string) error {
	lower := strings.ToLower(text)
	switch {
	case strings.HasPrefix(lower, "optimal"):
		return nil
	case strings.Contains(lower, "time"):
		return ErrTimeout
	case strings.Contains(lower, "infeasible"):
		return ErrInfeasible
	}
	return fmt.Errorf("%w: its status is %q", ErrAnswer, text)
}

// readCBC reads "Optimal - objective value 12.5", and then lines of a column's number, name, value and reduced cost; columns that are 0 are left
// out, and values out of bounds are marked with **.
func readCBC(solution []byte) (*answer, error) {
	lines := bufio.NewScanner(bytes.NewReader(solution))
	lines.Scan()
	state, objective, _ := strings.Cut(lines.Text(), " - objective value ")
	if err := status(state); err != nil {
		return nil, err
	}
	a := &answer{values: make(map[int]float64)}
	var err error
	if a.objective, err = finite(strings.TrimSpace(objective)); err != nil {
		return nil, fmt.Errorf("%w: objective: %w", ErrAnswer, err)
	}
	for lines.Scan() {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "**"))
		if len(fields) != 4 {
			return nil, fmt.Errorf("%w: line %q", ErrAnswer, lines.Text())
		}
		if err := a.set(fields[1], fields[2]); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return a, nil
}

// readHiGHS reads HiGHS's raw style: the status on the line after "Model status", "Objective 12.5", and after "# Columns 3" as many lines of
// name and value.
func readHiGHS(solution []byte) (*answer, error) {
	lines := strings.Split(string(solution), "\n")
	a := &answer{values: make(map[int]float64)}
	known, columns := false, 0
	for i := range lines {
		fields := strings.Fields(lines[i])
		switch {
		case strings.TrimSpace(lines[i]) == "Model status" && i+1 < len(lines):
			if err := status(lines[i+1]); err != nil {
				return nil, err
			}
			known = true
		case columns > 0 && len(fields) == 2:
			if err := a.set(fields[0], fields[1]); err != nil {
				return nil, err
			}
			columns--
			if columns == 0 {
				return a, nil
			}
		case len(fields) == 2 && fields[0] == "Objective":
			var err error
			if a.objective, err = finite(fields[1]); err != nil {
				return nil, fmt.Errorf("%w: objective: %w", ErrAnswer, err)
			}
		case len(fields) == 3 && fields[0] == "#" && fields[1] == "Columns" && known:
			columns, _ = strconv.Atoi(fields[2])
		}
	}
	return nil, fmt.Errorf("%w: it ends early", ErrAnswer)
}

func (a *answer) set(name, value string) error {
	number, ok := strings.CutPrefix(name, "c")
	i, err := strconv.Atoi(number)
	if !ok || err != nil {
		return fmt.Errorf("%w: column %q", ErrAnswer, name)
	}
	x, err := finite(value)
	if err != nil {
		return fmt.Errorf("%w: column %q: %w", ErrAnswer, name, err)
	}
	a.values[i] = x
	return nil
}

// finite reads a number; NaN and infinities are none.
func finite(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%q is not a finite number", text)
	}
	return x, nil
}
