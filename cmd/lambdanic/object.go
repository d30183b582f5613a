package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func objectCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "object",
		Short: "Read and write the objects of a lambda on the NIC",
		Long: "Read and write the objects (global variables) of a lambda that runs on the NIC, by their names in C. Requests that wait for\n" +
			"the host (docs/p4.md) run again when an object is written.",
		Example: "  lambdanic object list image_transformer\n  lambdanic object write image_transformer image_ready 1",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var namespace string
	cmd.PersistentFlags().StringVarP(&namespace, "namespace", "n", "", "the function's namespace")
	cmd.AddCommand(objectListCommand(o, &namespace), objectReadCommand(o, &namespace), objectWriteCommand(o, &namespace))
	for _, c := range cmd.Commands() {
		c.Args = explained(c.Args)
		c.ValidArgsFunction = completeFunctions(o, 1)
	}
	return cmd
}

func objectListCommand(o *options, namespace *string) *cobra.Command {
	return &cobra.Command{
		Use:     "list NAME[.NAMESPACE]",
		Short:   "List a lambda's objects and their sizes",
		Example: "  lambdanic object list image_transformer",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			name, in := qualified(args[0], *namespace)
			list, err := c.Objects(cmd.Context(), in, name)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), list)
			}
			var rows [][]string
			for _, object := range list {
				rows = append(rows, []string{object.Name, fmt.Sprint(object.Size)})
			}
			return ui.Table(cmd.OutOrStdout(), []string{"OBJECT", "BYTES"}, rows)
		},
	}
}

func objectReadCommand(o *options, namespace *string) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:     "read NAME[.NAMESPACE] OBJECT",
		Short:   "Print an object: as a number where it has up to 8 bytes, else in hex",
		Example: "  lambdanic object read image_transformer result_ready\n  lambdanic object read image_transformer result --out result.raw",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			name, in := qualified(args[0], *namespace)
			value, err := c.ReadObject(cmd.Context(), in, name, args[1])
			switch {
			case err != nil:
				return err
			case out == "-":
				_, err = cmd.OutOrStdout().Write(value)
				return err
			case out != "":
				return os.WriteFile(out, value, 0o644) //nolint:gosec // a result for others to read, as a shell's > makes it
			case o.json:
				return ui.JSON(cmd.OutOrStdout(), map[string]any{"name": args[1], "size": len(value), "hex": hex.EncodeToString(value)})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), formatObject(value))
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "write its bytes to this file, - for standard output")
	return cmd
}

func objectWriteCommand(o *options, namespace *string) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "write NAME[.NAMESPACE] OBJECT [VALUE]",
		Short: "Write an object, and let requests that wait for it run again",
		Long: "Write an object. VALUE is a number, or as many bytes as the object has, in hex behind \"hex:\". A negative number\n" +
			"stands behind \"--\", as it is not a flag. Requests that wait for the host then run again.",
		Example: "  lambdanic object write image_transformer image --file image.raw\n  lambdanic object write image_transformer image_ready 1\n" +
			"  lambdanic object write image_transformer image_ready -- -1",
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (file != "") == (len(args) == 3) {
				return fmt.Errorf("give a VALUE or --file: write `%s`", cmd.UseLine())
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			name, in := qualified(args[0], *namespace)
			var value []byte
			if file != "" {
				value, err = readInput(cmd, file)
			} else {
				var list []api.Object
				if list, err = c.Objects(cmd.Context(), in, name); err == nil {
					value, err = parseObject(list, args[1], args[2])
				}
			}
			if err != nil {
				return err
			}
			if err := c.WriteObject(cmd.Context(), in, name, args[1], value); err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), api.Object{Name: args[1], Size: uint32(len(value))})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s of %s is written, %d bytes\n", args[1], args[0], len(value))
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "take its bytes from this file, - for standard input")
	return cmd
}

func readInput(cmd *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	return os.ReadFile(file)
}

// parseObject reads a value from the command line. A name that is not in the list is left to the daemon.
func parseObject(list []api.Object, name, text string) ([]byte, error) {
	if digits, ok := strings.CutPrefix(text, "hex:"); ok {
		value, err := hex.DecodeString(digits)
		if err != nil {
			return nil, fmt.Errorf("value of %s: %w", name, err)
		}
		return value, nil
	}
	i := slices.IndexFunc(list, func(o api.Object) bool { return o.Name == name })
	if i < 0 {
		return nil, nil
	}
	n, ok := new(big.Int).SetString(text, 0)
	size := int(list[i].Size)
	switch {
	case size > 8:
		return nil, fmt.Errorf("object %s has %d bytes: give them with --file or in hex behind \"hex:\"", name, size)
	case !ok:
		return nil, fmt.Errorf("%q is not a number: write it as 10 or 0xa, or its bytes in hex behind \"hex:\"", text)
	case n.Sign() >= 0 && n.BitLen() > 8*size, n.Sign() < 0 && new(big.Int).Not(n).BitLen() >= 8*size:
		return nil, fmt.Errorf("%s does not fit into the %d bytes of %s", text, size, name)
	}
	value := make([]byte, size)
	bits := new(big.Int).Mod(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size))) // two's complement
	bits.FillBytes(value)
	slices.Reverse(value) // BPF's byte order is the machine's: little-endian
	return value, nil
}

// formatObject is the reverse.
func formatObject(value []byte) string {
	if len(value) > 8 {
		return hex.EncodeToString(value)
	}
	b := slices.Clone(value)
	slices.Reverse(b)
	return new(big.Int).SetBytes(b).String()
}
