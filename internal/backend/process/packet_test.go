package process

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// Methods of test/lambdas/packet.c.
const (
	methodEcho = iota
	methodText
	methodDrop
	methodFault
	methodFail
	methodCount
	methodCrash
	methodHang
	methodRevision
	methodPrefix
	methodTooLong
	methodToil
	methodKeep // of test/lambdas/stream.c
	methodSmash
	methodDivide
)

const workload = 0x00010007

func serveFixture(t *testing.T, mode api.MessageMode, name string) *rawClient {
	t.Helper()
	b := newBackend(t, checkedHost, shortdir.New(t))
	if err := b.Deploy(t.Context(), deployment(workload, 3, mode, fixture(t, name))); err != nil {
		t.Fatal(err)
	}
	endpoint, _ := b.Endpoint(workload)
	return dial(t, endpoint)
}

func wantText(n int, revision int) []byte {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(i*7 + revision)
	}
	return text
}

func TestReplyHeader(t *testing.T) {
	c := serveFixture(t, api.ModePacket, "packet")
	h := c.header(workload, methodEcho, 5)
	c.send(packet(h, []byte("hello"), 100))
	got, p := c.receive()
	want := h
	want.Magic, want.Version, want.Type, want.Length, want.Revision, want.DeadlineUS =
		api.RPCMagic, api.RPCVersion, api.TypeResponse, 5, 3, 0
	if got != want || string(p) != "hello" {
		t.Errorf("got %+v %q\nwant %+v", got, p, want)
	}
}

func TestVerdicts(t *testing.T) {
	c := serveFixture(t, api.ModePacket, "packet")
	for _, tt := range []struct {
		name    string
		method  uint32
		payload string
		room    int
		typ     api.Type
		code    uint8
		length  uint32 // message length
		want    string
	}{
		{"empty", methodEcho, "", 0, api.TypeResponse, 0, 0, ""},
		{"status", methodFail, "x", 0, api.TypeResponse, uint8(api.StatusBadRequest), 0, ""},
		{"fault", methodFault, "x", 0, api.TypeError, uint8(api.CodeLambdaFault), uint32(api.FaultOwn), ""},
		{"keep is for streams", methodKeep, "x", 0, api.TypeError, uint8(api.CodeLambdaFault), uint32(api.FaultOwn), ""},
		{"prefix", methodPrefix, "abc", 7, api.TypeResponse, 0, 7, "pre:abc"},
		{"prefix without room", methodPrefix, "abc", 6, api.TypeError, uint8(api.CodeTooLarge), 7, ""},
		{"beyond any packet", methodTooLong, "x", 1408, api.TypeError, uint8(api.CodeTooLarge), 0, ""},
		{"no room at all", methodText, "", 0, api.TypeError, uint8(api.CodeTooLarge), 5000, ""},
		{"null pointer", methodCrash, "x", 0, api.TypeError, uint8(api.CodeLambdaFault), uint32(api.FaultBounds), ""},
		{"division by zero", methodDivide, "x", 0, api.TypeError, uint8(api.CodeLambdaFault), uint32(api.FaultDivision), ""},
		{"endless loop", methodHang, "x", 0, api.TypeError, uint8(api.CodeLambdaFault), uint32(api.FaultTime), ""},
		{"after them", methodEcho, "still here", 0, api.TypeResponse, 0, 10, "still here"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, p := c.call(workload, tt.method, []byte(tt.payload), tt.room)
			if h.Type != tt.typ || h.Code != tt.code || h.MessageLen != tt.length || string(p) != tt.want || h.Count != 1 {
				t.Errorf("got %+v %q", h, p)
			}
		})
	}
}

// A text of 5,000 bytes in packets of 700, each pulled with the request again.
func TestPull(t *testing.T) {
	c := serveFixture(t, api.ModePacket, "packet")
	const size = 700
	req := c.header(workload, methodText, 2)
	c.send(packet(req, []byte("rq"), size))
	first, text := c.receive()
	if first.Length != size || first.MessageLen != 5000 || first.Count != 8 || first.Index != 0 {
		t.Fatalf("first packet: %+v", first)
	}
	for i := uint32(1); i < first.Count; i++ {
		pull := req
		pull.Type, pull.Index, pull.Count, pull.Revision, pull.MessageLen = api.TypePull, i, first.Count, first.Revision, size
		c.send(packet(pull, []byte("rq"), size))
		h, p := c.receive()
		if h.Type != api.TypeResponse || h.Index != i || h.Count != first.Count || h.MessageLen != 5000 {
			t.Fatalf("packet %d: %+v", i, h)
		}
		text = append(text, p...)
	}
	if !bytes.Equal(text, wantText(5000, 1)) {
		t.Error("wrong text")
	}
	stale := req
	stale.Type, stale.Index, stale.Count, stale.Revision, stale.MessageLen = api.TypePull, 1, 8, 99, size
	c.send(packet(stale, []byte("rq"), size))
	if h, _ := c.receive(); h.Type != api.TypeError || h.Code != uint8(api.CodeStale) {
		t.Errorf("pull from a revision that never was: %+v", h)
	}
}

// Each hostile packet gets the answer that docs/protocol.md says, or none; a good request after it is answered.
func TestHostilePackets(t *testing.T) {
	c := serveFixture(t, api.ModePacket, "packet")
	good := func() []byte { return packet(c.header(workload, methodEcho, 4), []byte("abcd"), 8) }
	patch := func(at int, v ...byte) []byte {
		b := good()
		copy(b[at:], v)
		return b
	}
	const silent = 0
	for _, tt := range []struct {
		name string
		b    []byte
		code api.Code
	}{
		{"empty datagram", nil, silent},
		{"truncated header", good()[:63], silent},
		{"wrong magic", patch(0, 0), silent},
		{"wrong version", patch(2, 2), silent},
		{"type 0", patch(3, 0), api.CodeMalformed},
		{"type 6", patch(3, 6), api.CodeMalformed},
		{"response", patch(3, 2), silent},
		{"error", patch(3, 5), silent},
		{"length beyond datagram", patch(6, 0, 9), api.CodeMalformed},
		{"huge length", patch(6, 0xff, 0xff), api.CodeMalformed},
		{"length is not message length", patch(6, 0, 3), api.CodeMalformed},
		{"other workload", patch(8, 0, 2), api.CodeUnknownWorkload},
		{"count 0", patch(28, 0, 0, 0, 0), api.CodeMalformed},
		{"index beyond count", patch(24, 0, 0, 0, 1), api.CodeMalformed},
		{"counts that do not add up", patch(28, 0, 0, 0, 9), api.CodeMalformed},
		{"two packets", patch(28, 0, 0, 0, 2, 0, 0, 0, 8), api.CodeTooLarge},
		{"pull of size 0", patch(3, 4, 0, 0, 0, 4, 0, 1, 0, 7, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0), api.CodeMalformed},
		{"done without message", patch(3, 3, 8), silent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.send(tt.b)
			if tt.code != silent {
				h, _ := c.receive()
				if h.Type != api.TypeError || h.Code != uint8(tt.code) || h.Length != 0 {
					t.Errorf("got %+v, want error %d", h, tt.code)
				}
			}
			if h, p := c.call(workload, methodEcho, []byte("fine"), 0); h.Type != api.TypeResponse || string(p) != "fine" {
				t.Errorf("afterwards: %+v %q", h, p)
			}
		})
	}
}

func TestStats(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	if err := b.Deploy(t.Context(), deployment(workload, 3, api.ModePacket, fixture(t, "packet"))); err != nil {
		t.Fatal(err)
	}
	endpoint, _ := b.Endpoint(workload)
	c := dial(t, endpoint)
	for range 128 {
		c.call(workload, methodEcho, []byte("abcd"), 0)
	}
	c.call(workload, methodFault, nil, 0)
	c.send(packet(c.header(workload, methodDrop, 0), nil, 0))
	c.call(workload, methodEcho, nil, 0)
	list, err := b.Status(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("status %v, %v", list, err)
	}
	s := list[0]
	if s.Workload != workload || s.Revision != 3 || s.Endpoint != endpoint {
		t.Errorf("got %+v", s)
	}
	st := s.Stats
	if st.Requests != 131 || st.Replies != 129 || st.Errors != 1 || st.Faults != 1 || st.Drops != 1 || st.BytesIn != 512 || st.BytesOut != 512 {
		t.Errorf("got %+v", st)
	}
	var hist uint64
	for _, n := range st.Histogram {
		hist += n
	}
	if st.Samples != 2 || hist != 2 || st.SampledNS == 0 {
		t.Errorf("samples: %+v", st)
	}
}

// In mode assemble, only runs are measured, not the work for each packet of a message.
func TestSamplesAreOfRuns(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	if err := b.Deploy(t.Context(), deployment(workload, 3, api.ModeAssemble, fixture(t, "assemble"))); err != nil {
		t.Fatal(err)
	}
	endpoint, _ := b.Endpoint(workload)
	c := dial(t, endpoint)
	for range 128 {
		for _, p := range c.fragments(1, make([]byte, 50), 10, 10, api.FlagAckWanted) {
			c.send(p)
			c.receive()
		}
	}
	list, err := b.Status(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("status %v, %v", list, err)
	}
	if st := list[0].Stats; st.Requests != 128 || st.Samples != 2 {
		t.Errorf("%d of %d runs were measured, not 2 of 128", st.Samples, st.Requests)
	}
}

func TestKeptStateIsShared(t *testing.T) {
	c := serveFixture(t, api.ModePacket, "packet")
	for want := range uint32(3) {
		_, p := c.call(workload, methodCount, make([]byte, 4), 0)
		if got := binary.LittleEndian.Uint32(p); got != want+1 {
			t.Errorf("count %d, want %d", got, want+1)
		}
	}
}
