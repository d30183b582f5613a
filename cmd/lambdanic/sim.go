package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/ui"
)

func simCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "sim",
		Short:   "Simulate clusters larger than yours",
		Long:    "Simulate clusters larger than yours, on this machine alone: nothing is deployed. Each seed gives the same result everywhere.",
		Example: "  lambdanic sim nanoservice paper figure5 --plot figure5.svg",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	nano := &cobra.Command{
		Use:     "nanoservice",
		Short:   "Simulate requests of about a microsecond, and their path from the wire to a core",
		Example: "  lambdanic sim nanoservice paper figure5 --plot figure5.svg\n  lambdanic sim nanoservice tree --depth 3,4,5",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	nano.AddCommand(simTreeCommand(o), simLoadCommand(o), simPaperCommand(o))
	cmd.AddCommand(nano, simOrchestratorCommand(o), simClusterCommand(o), simPlaceCommand(o))
	return cmd
}

// simOutput is where results go.
type simOutput struct {
	csv  bool
	plot string
}

func (s *simOutput) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.csv, "csv", false, "print results as CSV")
	cmd.Flags().StringVar(&s.plot, "plot", "", "also draw them to this file, as SVG")
}

func (s *simOutput) check(o *options) error {
	if s.csv && o.json {
		return errors.New("--csv, --json: results are printed as one or the other")
	}
	if ext := filepath.Ext(s.plot); s.plot != "" && ext != ".svg" {
		return fmt.Errorf("--plot %s: it is drawn as SVG: name it %s.svg", s.plot, strings.TrimSuffix(s.plot, ext))
	}
	return nil
}

// column is one of a table: its heading for people, and its name in CSV.
type column struct{ head, name string }

// write prints rows, which cells has as text, and draws the plot.
func (s *simOutput) write(cmd *cobra.Command, o *options, rows any, columns []column, cells [][]string, draw func(io.Writer) error) error {
	if s.plot != "" {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			return err
		}
		if err := os.WriteFile(s.plot, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write the plot: %w", err)
		}
	}
	var heads, names []string
	for _, c := range columns {
		heads, names = append(heads, c.head), append(names, c.name)
	}
	switch {
	case o.json:
		return ui.JSON(cmd.OutOrStdout(), rows)
	case s.csv:
		if err := csv.NewWriter(cmd.OutOrStdout()).WriteAll(slices.Concat([][]string{names}, cells)); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
		return nil
	}
	return ui.Table(cmd.OutOrStdout(), heads, cells)
}

// warn says what does not keep a simulation from being done.
func warn(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s %s\n", ui.Colour(cmd.ErrOrStderr(), ui.Yellow, "warning:"), fmt.Sprintf(format, args...))
}

func whole(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) }

func twoDigits(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// threeDigits are significant ones.
func threeDigits(x float64) string { return strings.TrimSuffix(fmt.Sprintf("%#.3g", x), ".") }

// watch shows how many of some things are done, until end is called.
func watch(cmd *cobra.Command, things string) (progress func(done, all int), end func()) {
	var done, all atomic.Int64
	progress = func(n, of int) {
		done.Store(int64(n))
		all.Store(int64(of))
	}
	return progress, ui.Watch(cmd.ErrOrStderr(), func() string {
		if all.Load() == 0 {
			return "preparing " + things
		}
		return fmt.Sprintf("%d of %d %s", done.Load(), all.Load(), things)
	})
}
