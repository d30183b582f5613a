package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says what is wrong with a flag, and what would be right.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &invalid) && errors.As(err, &number):
		return fmt.Errorf("--%s: %q %s", invalid.GetFlag().Name, number.Num, notA(invalid.GetFlag().Value.Type(), number.Err))
	default:
		return err
	}
}

// notA says what values of a type are: strconv's errors name functions of Go.
func notA(kind string, why error) string {
	switch {
	case kind == "bool":
		return "is neither true nor false"
	case kind == "uint16":
		return fmt.Sprintf("is not a whole number from 0 to %d", math.MaxUint16)
	case errors.Is(why, strconv.ErrRange):
		return "is too small or too large"
	case strings.HasPrefix(kind, "uint"):
		return "is not a whole number from 0"
	case strings.HasPrefix(kind, "int"):
		return "is not a whole number"
	default:
		return "is not a number"
	}
}

// unknownFlag suggests similar flags for an unknown one. Cobra does that only for commands.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	short := unknown.GetSpecifiedShortnames()
	if short != "" && '0' <= short[0] && short[0] <= '9' {
		return fmt.Errorf("-%s is taken for a flag: write \"--\" before a negative number, and flags before that: `%s ... -- -%s`", short, cmd.CommandPath(), short)
	}
	name := unknown.GetSpecifiedName()
	if len(short) > 1 { // a long name behind a single dash
		name = short
	}
	if near := nearFlags(cmd, name); len(near) > 0 && len(name) > 1 {
		return fmt.Errorf("%w: did you mean %s?", unknown, strings.Join(near, " or "))
	}
	return fmt.Errorf("%w: `%s --help` names them all", unknown, cmd.CommandPath())
}

// nearFlags has cobra look among the command's flags as it looks among commands.
func nearFlags(cmd *cobra.Command, name string) (near []string) {
	names := new(cobra.Command)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	for names.SuggestionsMinimumDistance = 1; names.SuggestionsMinimumDistance <= 2 && len(near) == 0; names.SuggestionsMinimumDistance++ {
		for _, n := range names.SuggestionsFor(name) {
			near = append(near, "--"+n)
		}
	}
	return near
}
