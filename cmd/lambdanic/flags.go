package main

import (
	"errors"
	"fmt"
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
	case errors.As(err, &invalid) && errors.As(err, &number) && strings.HasPrefix(number.Func, "Parse"):
		return invalidNumber(invalid, number)
	default:
		return err
	}
}

// invalidNumber says what kind of value a flag takes: strconv's errors name functions of Go.
func invalidNumber(invalid *pflag.InvalidValueError, number *strconv.NumError) error {
	what := "is not a number"
	switch kind := invalid.GetFlag().Value.Type(); {
	case errors.Is(number.Err, strconv.ErrRange):
		what = "is too small or too large"
	case kind == "bool":
		what = "is neither true nor false"
	case strings.HasPrefix(kind, "int"):
		what = "is not a whole number"
	case strings.HasPrefix(kind, "uint"):
		what = "is not a whole number from 0"
	}
	return fmt.Errorf("--%s: %q %s", invalid.GetFlag().Name, invalid.GetValue(), what)
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
