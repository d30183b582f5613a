// Package lambdanic calls lambdas by λ-RPC (docs/protocol.md).
//
// A [Client] serves any number of goroutines: their calls share its sockets. A [Conn] serves one goroutine, one call at a
// time, with no hand-over between threads: it is the shortest way to an answer.
package lambdanic

import (
	"time"

	"github.com/lambdanic/lambdanic/api"
)

// Request is one call of a lambda.
type Request struct {
	Workload uint32 // which lambda
	Method   uint32 // its meaning is the lambda's
	Body     []byte // must stay as it is until the call returns
	// ReplyRoom is the expected length of the reply: the request is padded so that so many bytes come back in one packet. 0 is
	// the length of earlier replies to the same method, or WithReplyRoom. A longer reply still arrives, in more packets.
	ReplyRoom int
	// Once asks the server to execute the request at most once while it remembers it: what is sent again is answered from memory.
	// The reply to a request of one packet then has to fit one packet, and the client never starts such a call over once it may
	// have been executed: ErrStale and ErrTooLarge are final, as is ErrDeadlineExceeded, after which nobody knows.
	Once bool
	// Reserve, if it is not nil, is asked before memory for a reply of so many bytes is taken. Its error ends the call. It must not
	// block: it is called while a packet is received. CallStream does not ask, as it takes no more than its window.
	Reserve func(bytes int) error
}

// Response is what a lambda answered.
type Response struct {
	Status   api.Status
	Revision uint32 // which revision of the lambda answered
	Body     []byte
	Length   int // of the reply; len(Body) except in CallStream
	Resends  int // packets that had to be sent again
}

// Option changes how Dial and DialConn connect.
type Option func(*options)

type options struct {
	timeout  time.Duration
	sockets  int
	room     int
	maxReply int
	once     bool
	spin     bool
	tagger   *tagger
}

func defaults(opts []Option) options {
	o := options{timeout: 5 * time.Second, sockets: 1, room: 512, maxReply: int(api.MaxMessage)}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithTimeout bounds calls whose context has no deadline: they fail after d without progress, that is without a packet
// that confirms more of the request or brings more of the reply. The default is 5 seconds.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithSockets spreads a Client's calls over n sockets, each with its own port and reader, so that several queues and CPUs
// share the work. The default is one.
func WithSockets(n int) Option { return func(o *options) { o.sockets = max(1, n) } }

// WithReplyRoom sets the room for replies of methods that were never called before. The default is 512 bytes.
func WithReplyRoom(n int) Option { return func(o *options) { o.room = n } }

// WithMaxReply refuses replies longer than n bytes. The default is the longest that a lambda can send, 90 MiB.
func WithMaxReply(n int) Option { return func(o *options) { o.maxReply = n } }

// WithKey tags all packets, header and payload, by a key of the namespace whose functions are called (api.ParseKey), and takes only answers that are tagged by it.
// An error without a tag may be anybody's, so it ends no call: it is told with ErrDeadlineExceeded.
func WithKey(k api.Key) Option { return func(o *options) { o.tagger = newTagger(&k, true) } }

// WithHeaderKey is WithKey with tags over the headers alone. They take less time on the NIC, but payloads can be changed on the way.
func WithHeaderKey(k api.Key) Option { return func(o *options) { o.tagger = newTagger(&k, false) } }

// WithoutResend sends every packet once: whatever is lost on the way fails its call at the deadline.
func WithoutResend() Option { return func(o *options) { o.once = true } }

// WithSpin makes a Conn poll for answers instead of sleeping. It takes a whole CPU. A Client ignores it.
func WithSpin() Option { return func(o *options) { o.spin = true } }
