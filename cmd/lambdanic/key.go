package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func namespaceKeyCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make and end the keys by which a namespace's packets are tagged",
		Long: "Make and end keys. Clients tag their packets by a key of the namespace, and the NIC refuses those whose tag is wrong. A namespace has up to two\n" +
			"keys at a time, so that clients can change from one to the next while both are good.",
		Example: "  lambdanic namespace key add tenant > tenant.key\n  lambdanic namespace key remove tenant 1",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(keyAddCommand(o), keyRemoveCommand(o))
	return cmd
}

func keyAddCommand(o *options) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "add NAMESPACE",
		Short: "Make a namespace's next key, and print it",
		Long: "Make a namespace's next key, and print it: nothing shows it later. The key before it stays good until it is removed. There is no third key\n" +
			"at a time. A namespace that there is not is made.",
		Example:           "  lambdanic namespace key add tenant --out tenant.key",
		Args:              explained(cobra.ExactArgs(1)),
		ValidArgsFunction: completeNames(1, listNamespaces(o)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			file := os.Stdout
			if out != "" { // before there is a key that nobody has
				if file, err = os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
					return fmt.Errorf("write the key: %w", err)
				}
				defer file.Close()
			}
			key, err := c.AddKey(cmd.Context(), args[0])
			if err != nil {
				if out != "" {
					_ = os.Remove(out)
				}
				return err
			}
			if out != "" {
				if err := writeKey(file, key); err != nil {
					return err
				}
				if o.json {
					return ui.JSON(cmd.OutOrStdout(), map[string]any{"number": key.Number, "file": out})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "key %d of namespace %s is in %s\n", key.Number, args[0], out)
				return nil
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), key)
			}
			text, _ := key.Key.MarshalText()
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "write the key to a new `file`, which only you can read")
	return cmd
}

// writeKey writes a key to a file, and closes it.
func writeKey(file *os.File, key *api.NewKey) error {
	text, _ := key.Key.MarshalText()
	_, err := fmt.Fprintf(file, "%s\n", text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write key %d: %w: nobody has it, so remove it before you make another one: `lambdanic namespace key remove %s %d`",
			key.Number, err, key.Key.Namespace, key.Number)
	}
	return nil
}

func keyRemoveCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAMESPACE NUMBER",
		Aliases:           []string{"rm"},
		Short:             "End a key: what it tags is refused from then on",
		Example:           "  lambdanic namespace key remove tenant 1",
		Args:              explained(cobra.ExactArgs(2)),
		ValidArgsFunction: completeOwned(o, keysOf),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.ParseUint(args[1], 10, 32)
			if err != nil {
				return fmt.Errorf("%q is not the number of a key: `lambdanic namespace show %s` names them", args[1], args[0])
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			return o.removeEach(cmd, args[1:], "namespace "+args[0]+": key ", func(string) error { return c.RemoveKey(cmd.Context(), args[0], uint32(number)) })
		},
	}
}

func namespaceTagsCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "tags NAMESPACE required|optional",
		Short: "Say whether a namespace's lambdas serve packets without tags",
		Long: "Say whether a namespace's lambdas serve packets without tags. A wrong tag is refused in any case. Where tags are required, there are\n" +
			"no match stages, what peers write by RDMA is refused, and the gateway tags the calls that it makes for HTTP.",
		Example:           "  lambdanic namespace tags tenant required",
		Args:              explained(cobra.ExactArgs(2)),
		ValidArgsFunction: completeTags(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			required, ok := map[string]bool{tagsRequired: true, tagsOptional: false}[args[1]]
			if !ok {
				return fmt.Errorf("%q is neither %s nor %s", args[1], tagsRequired, tagsOptional)
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			n, err := c.RequireTags(cmd.Context(), args[0], required)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), n)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "namespace %s: tags are %s\n", n.Name, args[1])
			return nil
		},
	}
}

const (
	tagsRequired = "required"
	tagsOptional = "optional"
)

func completeTags(o *options) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return []string{tagsRequired, tagsOptional}, cobra.ShellCompDirectiveNoFileComp
		}
		return completeNames(1, listNamespaces(o))(cmd, args, toComplete)
	}
}

// shownKeys are a namespace's keys in a table.
func shownKeys(k *api.NamespaceKeys) string {
	if k == nil {
		return "none"
	}
	var list []string
	for _, key := range k.Keys {
		list = append(list, fmt.Sprintf("%d (made %s)", key.Number, key.Made.Format("2006-01-02 15:04")))
	}
	tags := tagsOptional
	if k.Required {
		tags = tagsRequired
	}
	return strings.Join(list, ", ") + "; tags " + tags
}
