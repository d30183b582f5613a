// Command conformance is the Go client's driver for test/conformance: commands in, answers out, a line of JSON each.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/golden"
)

type command struct {
	Do     string          `json:"do"`
	Packet golden.HexBytes `json:"packet"`
	golden.Meaning

	Address       string `json:"address"`
	Gateway       string `json:"gateway"`
	Credentials   string `json:"credentials"`
	Namespace     string `json:"namespace"`
	TimeoutMS     int64  `json:"timeout_ms"`
	ReplyRoom     int    `json:"reply_room"`
	MaxReply      int    `json:"max_reply"`
	WithoutResend bool   `json:"without_resend"`
	Key           string `json:"key"`
	TagHeaderOnly bool   `json:"tag_header_only"`

	Calls  []call `json:"calls"`
	AtOnce bool   `json:"at_once"`
}

type call struct {
	Name       string          `json:"name"`
	Workload   uint32          `json:"workload"`
	Method     uint32          `json:"method"`
	Body       golden.HexBytes `json:"body"`
	DeadlineUS int64           `json:"deadline_us"`
	ReplyRoom  int             `json:"reply_room"`
	Once       bool            `json:"once"`
}

type outcome struct {
	Error    string          `json:"error,omitempty"`
	Need     int             `json:"need"`
	Text     string          `json:"text,omitempty"`
	Status   api.Status      `json:"status"`
	Revision uint32          `json:"revision"`
	Body     golden.HexBytes `json:"body"`
	Resends  int             `json:"resends"`
}

// decode gives the meaning of a packet, or why it is refused.
func decode(packet []byte) golden.Meaning {
	h, payload, err := api.ParsePacket(packet)
	if err == nil && (h.Type == api.TypeRequest || h.Type == api.TypeResponse) {
		_, _, err = h.Placement()
	}
	switch {
	case errors.Is(err, api.ErrNotRPC):
		return golden.Meaning{Error: "not λ-RPC"}
	case err != nil:
		return golden.Meaning{Error: "malformed"}
	}
	return golden.Meaning{Header: golden.Pack(&h), Payload: payload, Padding: len(packet) - api.RPCHeaderLen - len(payload)}
}

func encode(m *golden.Meaning) any {
	h := m.Header.Unpack()
	packet := append(h.Append(nil), m.Payload...)
	return map[string]golden.HexBytes{"packet": append(packet, make([]byte, m.Padding)...)}
}

var codes = map[api.Code]string{
	api.CodeUnknownWorkload: "unknown workload",
	api.CodeOverQuota:       "over quota",
	api.CodeBadTag:          "bad tag",
	api.CodeMalformed:       "malformed",
	api.CodeLambdaFault:     "lambda fault",
	api.CodeTooLarge:        "too large",
	api.CodeBusy:            "busy",
	api.CodeTimeout:         "time-out",
	api.CodeUnreachable:     "unreachable",
	api.CodeStale:           "stale",
	api.CodeDeadline:        "deadline",
}

// nameOf names an error. An error packet's reason comes first: a call that was refused until its deadline has both.
func nameOf(err error) (name string, need int) {
	var rpc *lambdanic.RPCError
	switch {
	case errors.As(err, &rpc):
		return codes[rpc.Code], rpc.Need
	case errors.Is(err, lambdanic.ErrDeadlineExceeded):
		return "deadline exceeded", 0
	case errors.Is(err, lambdanic.ErrRequestTooLarge):
		return "request too large", 0
	case errors.Is(err, lambdanic.ErrReplyTooLarge):
		return "reply too large", 0
	case errors.Is(err, lambdanic.ErrNoFunction):
		return "no such function", 0
	case errors.Is(err, lambdanic.ErrGateway):
		return "gateway", 0
	}
	return err.Error(), 0
}

// session is a client and, if the command named a gateway, a directory.
type session struct {
	client    *lambdanic.Client
	directory *lambdanic.Directory
}

func open(c *command) (s session, err error) {
	opts := []lambdanic.Option{
		lambdanic.WithTimeout(time.Duration(c.TimeoutMS) * time.Millisecond),
		lambdanic.WithReplyRoom(c.ReplyRoom), lambdanic.WithMaxReply(c.MaxReply),
	}
	if c.WithoutResend {
		opts = append(opts, lambdanic.WithoutResend())
	}
	if c.Key != "" {
		key, err := api.ParseKey(c.Key)
		if err != nil {
			return s, err
		}
		if c.TagHeaderOnly {
			opts = append(opts, lambdanic.WithHeaderKey(key))
		} else {
			opts = append(opts, lambdanic.WithKey(key))
		}
	}
	if c.Gateway != "" {
		user, password, _ := strings.Cut(c.Credentials, ":")
		s.directory = lambdanic.NewDirectory(c.Gateway, lambdanic.WithCredentials(user, password),
			lambdanic.WithNamespace(c.Namespace), lambdanic.WithOptions(opts...))
	}
	if c.Address != "" {
		s.client, err = lambdanic.Dial(c.Address, opts...)
	}
	return s, err
}

func (s session) call(c call) (o outcome) {
	ctx := context.Background()
	if c.DeadlineUS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.DeadlineUS)*time.Microsecond)
		defer cancel()
	}
	req := lambdanic.Request{Workload: c.Workload, Method: c.Method, Body: c.Body, ReplyRoom: c.ReplyRoom, Once: c.Once}
	var r lambdanic.Response
	var err error
	if c.Name != "" {
		r, err = s.directory.Call(ctx, c.Name, req)
	} else {
		r, err = s.client.Call(ctx, req)
	}
	if err == nil {
		return outcome{Status: r.Status, Revision: r.Revision, Body: r.Body, Resends: r.Resends}
	}
	o.Error, o.Need = nameOf(err)
	o.Text = err.Error()
	return o
}

func (s session) calls(c *command) any {
	outcomes := make([]outcome, len(c.Calls))
	var group sync.WaitGroup
	for i, call := range c.Calls {
		if c.AtOnce {
			group.Go(func() { outcomes[i] = s.call(call) })
		} else {
			outcomes[i] = s.call(call)
		}
	}
	group.Wait()
	return map[string][]outcome{"outcomes": outcomes}
}

func (s session) stats() any {
	var st lambdanic.Stats
	if s.client != nil {
		st = s.client.Stats()
	} else {
		st = s.directory.Stats()
	}
	return map[string]uint64{
		"calls": st.Calls, "restarts": st.Restarts, "sent": st.Sent, "resent": st.Resent, "received": st.Received,
		"duplicates": st.Duplicates, "stray": st.Stray, "malformed": st.Malformed,
	}
}

func (s session) close() {
	if s.client != nil {
		s.client.Close()
	}
	if s.directory != nil {
		s.directory.Close()
	}
}

func main() {
	log.SetFlags(0)
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	var s session
	for {
		var c command
		err := in.Decode(&c)
		if errors.Is(err, io.EOF) {
			return
		}
		var answer any = struct{}{}
		switch {
		case err != nil:
		case c.Do == "decode":
			answer = decode(c.Packet)
		case c.Do == "encode":
			answer = encode(&c.Meaning)
		case c.Do == "open":
			s, err = open(&c)
		case c.Do == "call":
			answer = s.calls(&c)
		case c.Do == "stats":
			answer = s.stats()
		case c.Do == "close":
			s.close()
		}
		if err == nil {
			err = out.Encode(answer)
		}
		if err != nil {
			log.Fatalf("%s: %v", c.Do, err)
		}
	}
}
