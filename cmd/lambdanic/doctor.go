package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/doctor"
)

func doctorCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "doctor",
		Short:   "Say what this machine can and cannot do, and what to do about it",
		Example: "  sudo lambdanic doctor",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks := doctor.Run(cmd.Context())
			show := doctor.WriteText
			if o.json {
				show = doctor.WriteJSON
			}
			if err := show(cmd.OutOrStdout(), checks); err != nil {
				return err
			}
			if needed, _ := doctor.Missing(checks); needed > 0 {
				return errors.New("something that lambdas on the NIC need is missing")
			}
			return nil
		},
	}
}
