package process

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/seed"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

func randomBytes(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// fragments are the packets of a message, size bytes each, padded to room.
func (c *rawClient) fragments(method uint32, message []byte, size, room int, flags api.Flag) [][]byte {
	h := c.header(workload, method, len(message))
	h.Count, h.Flags = uint32(api.Fragments(len(message), size)), flags
	var all [][]byte
	for at := 0; at < len(message); at += size {
		all = append(all, packet(h, message[at:min(len(message), at+size)], room))
		h.Index++
	}
	return all
}

func reversed(b []byte) []byte {
	b = slices.Clone(b)
	slices.Reverse(b)
	return b
}

// Packets out of order and twice; every one acknowledged; one run; the reply pulled; then forgotten.
func TestAssemble(t *testing.T) {
	c := serveFixture(t, api.ModeAssemble, "assemble")
	const size = 1000
	message := randomBytes(10*size + 17)
	packets := c.fragments(0, message, size, size, api.FlagAckWanted)
	seed.Rand(t).Shuffle(len(packets), func(i, j int) { packets[i], packets[j] = packets[j], packets[i] })
	last := packets[len(packets)-1]
	var seen uint64
	for _, p := range packets[:len(packets)-1] {
		h, _, _ := api.ParsePacket(p)
		seen |= 1 << h.Index
		for range 2 {
			c.send(p)
			ack, bitmap := c.receive()
			if ack.Type != api.TypeAck || ack.Index != h.Index || ack.Revision != 3 || binary.BigEndian.Uint64(bitmap) != seen {
				t.Fatalf("packet %d: %+v %x, want bitmap %x", h.Index, ack, bitmap, seen)
			}
		}
	}
	c.send(last)
	first, reply := c.receive()
	if first.Type != api.TypeResponse || first.Index != 0 || first.Count != 11 || first.MessageLen != uint32(len(message)) {
		t.Fatalf("response %+v", first)
	}
	c.send(packets[0]) // as if the answer had been lost
	if again, p := c.receive(); again != first || !bytes.Equal(p, reply) {
		t.Errorf("remembered reply %+v, first was %+v", again, first)
	}
	pull := first
	pull.Type, pull.MessageLen = api.TypePull, size
	for pull.Index = 1; pull.Index < first.Count; pull.Index++ {
		c.send(packet(pull, nil, size))
		h, p := c.receive()
		if h.Type != api.TypeResponse || h.Index != pull.Index || h.Count != first.Count {
			t.Fatalf("pull %d: %+v", pull.Index, h)
		}
		reply = append(reply, p...)
	}
	if !bytes.Equal(reply, reversed(message)) {
		t.Error("wrong reply")
	}
	done := first
	done.Type, done.Flags, done.Index, done.Count, done.MessageLen = api.TypeAck, api.FlagDone, 0, 1, 0
	c.send(packet(done, nil, 0))
	pull.Index = 1
	c.send(packet(pull, nil, size))
	if h, _ := c.receive(); h.Type != api.TypeError || h.Code != uint8(api.CodeStale) {
		t.Errorf("pull after done: %+v", h)
	}
}

func TestAssembleSinglePacketRunsOnce(t *testing.T) {
	c := serveFixture(t, api.ModeAssemble, "assemble")
	b := packet(c.header(workload, 1, 4), make([]byte, 4), 0)
	for range 3 {
		c.send(b)
		if _, p := c.receive(); binary.LittleEndian.Uint32(p) != 1 {
			t.Fatalf("run %d of one request", binary.LittleEndian.Uint32(p))
		}
	}
}

// A message that is executed at most once failed: repeated packets and pulls are told why.
func TestRememberedFault(t *testing.T) {
	for mode, method := range map[api.MessageMode]uint32{api.ModePacket: methodDivide, api.ModeAssemble: methodZero} {
		c := serveFixture(t, mode, string(mode))
		failed := func(what string) {
			t.Helper()
			h, _ := c.receive()
			if h.Type != api.TypeError || h.Code != uint8(api.CodeLambdaFault) || api.Fault(h.MessageLen) != api.FaultDivision {
				t.Errorf("mode %s, %s: %+v, want a fault by a division", mode, what, h)
			}
		}
		h := c.header(workload, method, 4)
		h.Flags = api.FlagOnce
		for range 3 {
			c.send(packet(h, make([]byte, 4), 100))
			failed("a request")
		}
		if mode == api.ModePacket {
			continue
		}
		list := c.fragments(method, make([]byte, 300), 100, 100, api.FlagOnce)
		for _, b := range list[:2] {
			c.send(b)
		}
		for range 2 {
			c.send(list[2])
			failed("a message")
		}
		last, _, err := api.ParsePacket(list[2])
		if err != nil {
			t.Fatal(err)
		}
		last.Type, last.Index, last.Revision, last.MessageLen = api.TypePull, 1, 3, 100
		c.send(packet(last, nil, 100))
		failed("a pull")
	}
}

// Each packet of a message that is not begun is refused, and the message counts once.
func TestRefusedMessageCountsOnce(t *testing.T) {
	const tooLarge = 1 << 20
	for _, tt := range []struct {
		mode  api.MessageMode
		size  int
		flags api.Flag
		begun int // messages that use up the records
		code  api.Code
	}{
		{api.ModePacket, 5000, 0, 0, api.CodeTooLarge}, {api.ModeAssemble, tooLarge, 0, 0, api.CodeTooLarge},
		{api.ModeStream, tooLarge, 0, 0, api.CodeTooLarge}, {api.ModeStream, 5000, api.FlagOnce, 0, api.CodeTooLarge},
		{api.ModeAssemble, 5000, 0, 4, api.CodeBusy},
	} {
		b := newBackend(t, checkedHost, shortdir.New(t))
		c := dial(t, mustDeploy(t, b, deployment(workload, 3, tt.mode, fixture(t, string(tt.mode)))))
		for range tt.begun {
			c.send(c.fragments(0, make([]byte, 5000), 1000, 1000, api.FlagAckWanted)[0])
			c.receive()
		}
		for _, f := range c.fragments(methodKeep, make([]byte, tt.size), 1000, 1000, tt.flags) {
			c.send(f)
			if h, _ := c.receive(); h.Type != api.TypeError || h.Code != uint8(tt.code) {
				t.Fatalf("%+v: %+v", tt, h)
			}
		}
		list, err := b.Status(t.Context())
		if err != nil || len(list) != 1 || list[0].Stats.Errors != 1 {
			t.Errorf("%+v: %+v, %v: want one error", tt, list, err)
		}
	}
}

func TestMessageLimits(t *testing.T) {
	c := serveFixture(t, api.ModeAssemble, "assemble")
	expect := func(what string, b []byte, code api.Code) {
		t.Helper()
		c.send(b)
		if h, _ := c.receive(); h.Type != api.TypeError || h.Code != uint8(code) {
			t.Errorf("%s: %+v, want error %d", what, h, code)
		}
	}
	expect("message beyond the limit", c.fragments(0, make([]byte, 65<<10), 1024, 0, 0)[0], api.CodeTooLarge)

	message := c.fragments(0, randomBytes(3000), 1000, 0, api.FlagAckWanted)
	c.send(message[0])
	c.receive()
	other, _, _ := api.ParsePacket(message[1])
	other.MessageLen = 2999
	expect("contradicts its message", packet(other, make([]byte, 1000), 0), api.CodeMalformed)
	other.MessageLen = 1003
	other.Index, other.Count = 2, 3
	expect("last packet that does not fit", packet(other, make([]byte, 2), 0), api.CodeMalformed)

	// Four records, of which one is in use. A message in progress is never evicted, an answered one is.
	for range 3 {
		c.send(c.fragments(0, randomBytes(2000), 1000, 0, api.FlagAckWanted)[0])
		if h, _ := c.receive(); h.Type != api.TypeAck {
			t.Fatalf("message not begun: %+v", h)
		}
	}
	expect("fifth message", c.fragments(0, randomBytes(2000), 1000, 0, 0)[0], api.CodeBusy)
	c.send(message[1])
	c.receive()
	c.send(message[2])
	if h, _ := c.receive(); h.Type != api.TypeResponse {
		t.Fatalf("first message: %+v", h)
	}
	if h, p := c.call(workload, 0, []byte("abc"), 0); h.Type != api.TypeResponse || string(p) != "cba" {
		t.Errorf("message in the place of an answered one: %+v %q", h, p)
	}
}

// A client that gives up an unfinished message frees its record, for others and for the same message anew.
func TestMessageGivenUp(t *testing.T) {
	c := serveFixture(t, api.ModeAssemble, "assemble")
	for range 10 { // with four records
		message := c.fragments(0, randomBytes(2000), 1000, 0, api.FlagAckWanted)
		for i := range message {
			c.send(message[i])
			h, bitmap := c.receive()
			if h.Type != api.TypeAck || binary.BigEndian.Uint64(bitmap) != 1<<i {
				t.Fatalf("packet %d: %+v %x", i, h, bitmap)
			}
			h.Flags = api.FlagDone
			c.send(packet(h, nil, 0))
		}
	}
}

func TestMessagesExpire(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	d := deployment(workload, 3, api.ModeAssemble, fixture(t, "assemble"))
	d.Spec.Message.Timeout = api.Duration(50 * time.Millisecond)
	if err := b.Deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	endpoint, _ := b.Endpoint(workload)
	c := dial(t, endpoint)
	for range 4 {
		c.send(c.fragments(0, randomBytes(2000), 1000, 0, api.FlagAckWanted)[0])
		c.receive()
	}
	eventually(t, "records are free again", func() bool {
		h, p := c.call(workload, 0, []byte("abc"), 0)
		return h.Type == api.TypeResponse && string(p) == "cba"
	})
}

// Each packet of a stream is answered, and a repeated packet is answered again.
func TestStreamAnswersEachPacket(t *testing.T) {
	c := serveFixture(t, api.ModeStream, "stream")
	message := randomBytes(5000)
	got := make([]byte, len(message))
	for _, i := range []int{2, 0, 3, 1, 1} {
		c.send(c.fragmentsOf(message)[i])
		h, p := c.receive()
		if h.Type != api.TypeResponse || h.Index != uint32(i) || h.Count != 4 || h.MessageLen != 5000 {
			t.Fatalf("packet %d: %+v", i, h)
		}
		copy(got[i*1376:], p)
	}
	for i := range got {
		if got[i] != ^message[i] {
			t.Fatalf("byte %d is %#x, want %#x", i, got[i], ^message[i])
		}
	}
	if h, p := c.call(workload, 0, []byte{0, 1}, 0); h.Type != api.TypeResponse || !bytes.Equal(p, []byte{0xff, 0xfe}) {
		t.Errorf("message of one packet: %+v %x", h, p)
	}
}

// fragmentsOf makes the packets of one and the same message each time.
func (c *rawClient) fragmentsOf(message []byte) [][]byte {
	saved := c.next
	packets := c.fragments(0, message, api.RPCFragment, 0, 0)
	c.next = saved
	return packets
}

// Packets are kept. The one that completes the message is answered, and answered again when it comes again.
func TestStreamKeeps(t *testing.T) {
	c := serveFixture(t, api.ModeStream, "stream")
	message := randomBytes(4000)
	var want uint64
	for _, b := range message {
		want += uint64(b)
	}
	packets := c.fragments(1, message, 1000, 0, api.FlagAckWanted)
	for i, p := range packets {
		c.send(p)
		h, body := c.receive()
		if i < len(packets)-1 {
			if h.Type != api.TypeAck || binary.BigEndian.Uint64(body) != 1<<(i+1)-1 {
				t.Fatalf("packet %d: %+v %x", i, h, body)
			}
			continue
		}
		if h.Type != api.TypeResponse || binary.LittleEndian.Uint64(body) != want {
			t.Fatalf("response %+v %x, want %d", h, body, want)
		}
	}
	c.send(packets[1])
	if h, body := c.receive(); h.Type != api.TypeResponse || binary.LittleEndian.Uint64(body) != want {
		t.Errorf("packet that came again after the answer: %+v %x", h, body)
	}
}
