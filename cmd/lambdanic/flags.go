package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknownFlag says which flag may be meant, where the command has none of that name. Cobra does that for commands alone.
func unknownFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	if short := unknown.GetSpecifiedShortnames(); short != "" && '0' <= short[0] && short[0] <= '9' {
		return fmt.Errorf("-%s is taken for a flag: write \"--\" before a negative number, and flags before that: `%s ... -- -%s`", short, cmd.CommandPath(), short)
	}
	if near := nearFlags(cmd, unknown.GetSpecifiedName()); len(near) > 0 && unknown.GetSpecifiedShortnames() == "" {
		return fmt.Errorf("%w: did you mean %s?", err, strings.Join(near, " or "))
	}
	return fmt.Errorf("%w: `%s --help` names them all", err, cmd.CommandPath())
}

// nearFlags has cobra look among the command's flags as it looks among commands.
func nearFlags(cmd *cobra.Command, name string) (near []string) {
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	for _, n := range names.SuggestionsFor(name) {
		near = append(near, "--"+n)
	}
	return near
}
