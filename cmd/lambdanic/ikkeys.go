package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/ikernel"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func ikKeysCommand(o *options) *cobra.Command {
	var add, remove []string
	cmd := &cobra.Command{
		Use:   "keys NAME",
		Short: "List or change the keys by which an ikernel checks requests",
		Long: "List or change the keys by which an ikernel checks requests. A key is in a file that its owner alone may read, and is never shown. All changes\n" +
			"of one command take effect at once, and have done so when it returns. Add a new key before the first token is signed by it, and remove the\n" +
			"old one when the last of its tokens has expired: so no request is lost. Each change reads the files of all keys anew.",
		Example: "  lambdanic ik keys coap-jwt-5683\n" +
			"  lambdanic ik keys coap-jwt-5683 --add 2026-12=/etc/coap/2026-12.key\n" +
			"  lambdanic ik keys coap-jwt-5683 --remove 2026-11",
		Args:              explained(cobra.ExactArgs(1)),
		ValidArgsFunction: completeIkernels(o, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			added, err := parseKeys(add)
			if err != nil {
				return err
			}
			i, err := ikKeys(cmd, o, args[0], api.IkernelKeysRequest{Remove: remove, Add: added})
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), i.Keys)
			}
			var rows [][]string
			for _, k := range i.Keys {
				rows = append(rows, []string{i.Name, cmp.Or(k.ID, "-"), k.File})
			}
			return ui.Table(cmd.OutOrStdout(), []string{"NAME", "ID", "FILE"}, rows)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&add, "add", nil, "the file of a key, as `[ID=]FILE`, of which tokens may name the ID (kid); several by several --add")
	f.StringArrayVar(&remove, "remove", nil, "the `ID` of a key, or its file where it has no ID; several by several --remove")
	return cmd
}

// ikKeys changes the keys of an ikernel, if there is something to change.
func ikKeys(cmd *cobra.Command, o *options, name string, r api.IkernelKeysRequest) (*api.Ikernel, error) {
	if len(r.Remove)+len(r.Add) == 0 {
		list, err := ikernels(cmd.Context(), o)
		if err != nil {
			return nil, err
		}
		if list, err = chooseIkernels(list, []string{name}); err != nil {
			return nil, err
		}
		return &list[0], nil
	}
	for i, key := range r.Remove { // a file, as --add would have it
		if strings.Contains(key, "/") {
			var err error
			if r.Remove[i], err = filepath.Abs(key); err != nil {
				return nil, err
			}
		}
	}
	c, err := o.client()
	if err != nil {
		return nil, err
	}
	return c.ChangeIkernelKeys(cmd.Context(), name, r)
}

// parseKeys reads keys that are written as FILE or ID=FILE.
func parseKeys(texts []string) (keys []api.IkernelKey, err error) {
	for _, text := range texts {
		k := api.IkernelKey{File: text}
		if id, file, ok := strings.Cut(text, "="); ok && ikernel.KeyID.MatchString(id) {
			k = api.IkernelKey{ID: id, File: file}
		}
		if k.File == "" {
			return nil, fmt.Errorf("%q names no file: write FILE or ID=FILE", text)
		}
		if k.File, err = filepath.Abs(k.File); err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}
