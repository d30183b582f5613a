package lambdanic

import (
	"context"
	"fmt"
	"io"

	"github.com/lambdanic/lambdanic/api"
)

// check finds errors in options, before anything is opened.
func (o *options) check() error {
	switch most := int(api.MaxMessage); {
	case o.timeout <= 0:
		return fmt.Errorf("%w: a time-out of %v: give WithTimeout more than 0", ErrArgument, o.timeout)
	case o.room < 0 || o.room > most:
		return fmt.Errorf("%w: room for replies of %d bytes: give WithReplyRoom 0 to %d", ErrArgument, o.room, most)
	case o.maxReply < 0 || o.maxReply > most:
		return fmt.Errorf("%w: replies of up to %d bytes: give WithMaxReply 0 to %d", ErrArgument, o.maxReply, most)
	}
	return nil
}

// check finds errors in a request, before anything is sent.
func (r *Request) check(ctx context.Context) error {
	switch {
	case ctx == nil:
		return fmt.Errorf("call workload %#x: %w: no context: give context.Background()", r.Workload, ErrArgument)
	case r.ReplyRoom < 0:
		return fmt.Errorf("call workload %#x: %w: room for a reply of %d bytes: give ReplyRoom 0 or more", r.Workload, ErrArgument, r.ReplyRoom)
	}
	return nil
}

// checkStream also checks the request's reader and the reply's writer.
func checkStream(ctx context.Context, req *Request, body io.Reader, size int, w io.Writer) error {
	switch {
	case size < 0:
		return fmt.Errorf("call workload %#x: %w: a body of %d bytes", req.Workload, ErrArgument, size)
	case body == nil && size > 0 || w == nil:
		return fmt.Errorf("call workload %#x: %w: no reader or writer: give http.NoBody or io.Discard", req.Workload, ErrArgument)
	}
	return req.check(ctx)
}
