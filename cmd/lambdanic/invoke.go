package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/ui"
)

// oneFunction says where a path or a text belongs, if one is given as a further argument.
func oneFunction(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%q is one argument too many: invoke takes one name; give the request with --data or --file", args[1])
	}
	return cobra.ExactArgs(1)(cmd, args)
}

type invokeFlags struct {
	data, file, out, method string
	timeout                 api.Duration
}

func invokeCommand(o *options) *cobra.Command {
	var flags invokeFlags
	cmd := &cobra.Command{
		Use:   "invoke NAME[.NAMESPACE]",
		Short: "Call a function",
		Long:  "Call a function by the gateway, and print what it answers.",
		Example: "  lambdanic invoke web_server --method 1\n" +
			"  lambdanic invoke kv_client --method 0 --data key\n" +
			"  lambdanic invoke image_transformer --file in.png --out out.png\n" +
			"  generate | lambdanic invoke web_server --file -",
		Args:              oneFunction,
		ValidArgsFunction: completeFunctions(o, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			method, err := strconv.ParseUint(flags.method, 0, 32)
			if err != nil {
				return fmt.Errorf("method %q is not a number of 32 bits", flags.method)
			}
			body, header, err := flags.request(cmd)
			if err != nil {
				return err
			}
			defer body.Close()
			end := ui.Progress(cmd.ErrOrStderr(), "waiting for "+args[0])
			answer, err := c.Invoke(cmd.Context(), args[0], uint32(method), body, header)
			end()
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			return flags.show(cmd, o.json, args[0], answer)
		},
	}
	set := cmd.Flags()
	set.StringVarP(&flags.data, "data", "d", "", "the request's bytes")
	set.StringVar(&flags.file, "file", "", "a file with the request's bytes, - for standard input")
	set.StringVarP(&flags.out, "out", "o", "", "a file for the answer")
	set.StringVarP(&flags.method, "method", "m", "0", "the λ-RPC method, whose meaning is the lambda's")
	set.TextVar(&flags.timeout, "timeout", api.Duration(0), "how long to wait in all, a `duration` as 500ms or 5s; 0s: until nothing comes for five seconds")
	return cmd
}

// request opens the request's body. A file's name decides its type.
func (f *invokeFlags) request(cmd *cobra.Command) (io.ReadCloser, http.Header, error) {
	header := http.Header{}
	if f.timeout > 0 {
		header.Set(api.HeaderTimeout, time.Duration(f.timeout).String())
	}
	if f.data != "" && f.file != "" {
		return nil, nil, errors.New("give either --data or --file")
	}
	switch f.file {
	case "":
		return io.NopCloser(strings.NewReader(f.data)), header, nil
	case "-":
		return io.NopCloser(cmd.InOrStdin()), header, nil
	}
	file, err := os.Open(f.file)
	if err != nil {
		return nil, nil, fmt.Errorf("read the request: %w", err)
	}
	if t := mime.TypeByExtension(filepath.Ext(f.file)); t != "" {
		header.Set("Content-Type", t)
	}
	return file, header, nil
}

// result is what --json prints.
type result struct {
	Status   int         `json:"status"`
	Name     string      `json:"name"`
	CallID   string      `json:"call_id"`
	ServedBy string      `json:"served_by"`
	Revision string      `json:"revision,omitempty"`
	Seconds  json.Number `json:"seconds,omitempty"`
	Bytes    int64       `json:"bytes"`
	Text     *string     `json:"text,omitempty"` // the answer where it is text
	Body     []byte      `json:"body,omitempty"` // and, in base64, where it is not
	Error    string      `json:"error,omitempty"`
	Out      string      `json:"out,omitempty"` // the file that holds it
}

func (f *invokeFlags) show(cmd *cobra.Command, asJSON bool, name string, answer *http.Response) error {
	failed := failure(name, answer)
	if failed != nil && !asJSON {
		return failed
	}
	if f.out == "" && !asJSON {
		_, err := io.Copy(cmd.OutOrStdout(), answer.Body)
		return err
	}
	h := answer.Header
	r := result{
		Status: answer.StatusCode, Name: name, CallID: h.Get(api.HeaderCallID), ServedBy: h.Get(api.HeaderServedBy),
		Revision: h.Get(api.HeaderRevision), Seconds: json.Number(h.Get(api.HeaderDuration)),
	}
	var err error
	switch {
	case failed != nil:
		r.Error = failed.Error()
	case f.out != "":
		r.Out = f.out
		r.Bytes, err = save(f.out, answer.Body)
	default:
		var body []byte
		body, err = io.ReadAll(answer.Body)
		r.Bytes = int64(len(body))
		if text := string(body); utf8.Valid(body) {
			r.Text = &text
		} else {
			r.Body = body
		}
	}
	if err == nil && asJSON {
		err = ui.JSON(cmd.OutOrStdout(), r)
	}
	return errors.Join(err, failed)
}

// failure is the error of an answer with an error status.
func failure(name string, answer *http.Response) error {
	if answer.StatusCode < 300 {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return fmt.Errorf("%s answered %s: %s", name, answer.Status, ui.Printable(strings.TrimSpace(string(text))))
}

// save writes a file as a whole or not at all.
func save(path string, from io.Reader) (int64, error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".lambdanic-")
	if err != nil {
		return 0, fmt.Errorf("write the answer: %w", err)
	}
	defer os.Remove(file.Name())
	n, err := io.Copy(file, from)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return n, fmt.Errorf("write the answer: %w", err)
	}
	return n, os.Rename(file.Name(), path)
}
