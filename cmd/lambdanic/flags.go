package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknownFlag suggests similar flags for an unknown one. Cobra does that only for commands.
func unknownFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	short := unknown.GetSpecifiedShortnames()
	if short != "" && '0' <= short[0] && short[0] <= '9' {
		return fmt.Errorf("-%s is taken for a flag: write \"--\" before a negative number, and flags before that: `%s ... -- -%s`", short, cmd.CommandPath(), short)
	}
	name := unknown.GetSpecifiedName()
	if len(short) > 1 { // a long name behind a single dash
		name = short
	}
	if near := nearFlags(cmd, name); len(near) > 0 && len(name) > 1 {
		return fmt.Errorf("%w: did you mean %s?", err, strings.Join(near, " or "))
	}
	return fmt.Errorf("%w: `%s --help` names them all", err, cmd.CommandPath())
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
