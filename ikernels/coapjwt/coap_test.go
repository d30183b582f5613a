package coapjwt

import (
	"bytes"
	"testing"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/udp/coder"
)

// TestMessages checks messages of certain forms.
func TestMessages(t *testing.T) {
	b := newBench(t, 1)
	payload := append([]byte{0xff}, pair(t, sign(t, b.secrets[0], claims))...)
	raw := func(start ...byte) []byte { return append(start, payload...) }
	const (
		con, non, ack, rst = 0x40, 0x50, 0x60, 0x70
		get, post, fetch   = 1, 2, 5
		passed, malformed  = GuardCjVerdictCJ_PASSED, GuardCjVerdictCJ_MALFORMED
		other, none        = GuardCjVerdictCJ_OTHER, GuardCjVerdictCJ_NO_TOKEN
		part, large        = GuardCjVerdictCJ_BLOCKWISE, GuardCjVerdictCJ_LARGE
	)
	options := func(n int) []byte { return raw(append([]byte{con, post, 0, 1}, bytes.Repeat([]byte{0x10}, n)...)...) }
	for name, c := range map[string]struct {
		message []byte
		want    GuardCjVerdict
	}{
		"confirmable":                   {raw(con, post, 0, 1), passed},
		"non-confirmable":               {raw(non, post, 0, 1), passed},
		"GET with a payload":            {raw(con, get, 0, 1), passed},
		"FETCH":                         {raw(con, fetch, 0, 1), passed},
		"an unknown method":             {raw(con, 31, 0, 1), passed},
		"a token of eight bytes":        {raw(con|8, post, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8), passed},
		"a delta of 13":                 {raw(con, post, 0, 1, 0xd1, 0, 'a'), passed},
		"a delta of 268":                {raw(con, post, 0, 1, 0xd0, 255), passed},
		"a delta of 269":                {raw(con, post, 0, 1, 0xe0, 0, 0), passed},
		"the last option":               {raw(con, post, 0, 1, 0xe0, 0xfe, 0xf2), passed},
		"a length of 13":                {raw(append([]byte{con, post, 0, 1, 0xbd, 0}, make([]byte, 13)...)...), passed},
		"a length of 269":               {raw(append([]byte{con, post, 0, 1, 0xbe, 0, 0}, make([]byte, 269)...)...), passed},
		"an option with marker in it":   {raw(con, post, 0, 1, 0xb1, 0xff), passed},
		"as many options as may be":     {options(int(GuardCjLimitCJ_OPTIONS)), passed},
		"one part that is all":          {raw(con, post, 0, 1, 0xd1, 14, 6), passed},
		"one part, by no value":         {raw(con, post, 0, 1, 0xd0, 14), passed},
		"one part, by a longer value":   {raw(con, post, 0, 1, 0xd3, 14, 0, 0, 7), passed},
		"a later part of the response":  {raw(con, post, 0, 1, 0xd1, 10, 0x16), passed},
		"one option more":               {options(int(GuardCjLimitCJ_OPTIONS) + 1), large},
		"the first part":                {raw(con, post, 0, 1, 0xd1, 14, 0x0e), part},
		"the last part":                 {raw(con, post, 0, 1, 0xd1, 14, 0x16), part},
		"part 4096":                     {raw(con, post, 0, 1, 0xd3, 14, 1, 0, 6), part},
		"a part by too long a value":    {raw(con, post, 0, 1, 0xd4, 14, 0, 0, 0, 6), part},
		"the first part, by RFC 9177":   {raw(con, post, 0, 1, 0xd1, 6, 0x0e), part},
		"a ping":                        {[]byte{con, 0, 0, 1}, other},
		"an acknowledgement":            {[]byte{ack, 0, 0, 1}, other},
		"a reset":                       {[]byte{rst, 0, 0, 1}, other},
		"a response":                    {[]byte{ack, 0x45, 0, 1}, other},
		"a response with a payload":     {raw(con, 0x45, 0, 1), other},
		"client error":                  {[]byte{non, 0x84, 0, 1}, other},
		"server error":                  {[]byte{con, 0xa0, 0, 1}, other},
		"GET":                           {[]byte{con, get, 0, 1}, none},
		"GET /.well-known/core":         {append([]byte{con, get, 0, 1, 0xbb}, ".well-known\x04core"...), none},
		"nothing behind the marker":     {[]byte{con, post, 0, 1, 0xff}, malformed},
		"version 0":                     {raw(0, post, 0, 1), malformed},
		"version 2":                     {raw(0x80, post, 0, 1), malformed},
		"version 3":                     {raw(0xc0, post, 0, 1), malformed},
		"a token of nine bytes":         {raw(con|9, post, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9), malformed},
		"a token of 15 bytes":           {raw(con|15, post, 0, 1), malformed},
		"a token beyond the end":        {[]byte{con | 8, post, 0, 1, 1, 2}, malformed},
		"a ping with a token":           {[]byte{con | 1, 0, 0, 1, 1}, malformed},
		"a ping with a payload":         {raw(con, 0, 0, 1), malformed},
		"a request that acknowledges":   {raw(ack, post, 0, 1), malformed},
		"a request that resets":         {raw(rst, post, 0, 1), malformed},
		"code 1.00":                     {raw(con, 0x20, 0, 1), malformed},
		"code 3.01":                     {raw(con, 0x61, 0, 1), malformed},
		"code 6.31":                     {raw(con, 0xdf, 0, 1), malformed},
		"code 7.01, of CoAP by TCP":     {raw(con, 0xe1, 0, 1), malformed},
		"a delta of 15":                 {raw(con, post, 0, 1, 0xf0), malformed},
		"a length of 15":                {raw(con, post, 0, 1, 0x1f), malformed},
		"an option beyond the last":     {raw(con, post, 0, 1, 0xe0, 0xff, 0xff), malformed},
		"options that go beyond it":     {raw(con, post, 0, 1, 0xe0, 0xfe, 0xf2, 0x10), malformed},
		"an option beyond the end":      {[]byte{con, post, 0, 1, 0xb5, 'a'}, malformed},
		"a delta beyond the end":        {[]byte{con, post, 0, 1, 0xd0}, malformed},
		"half of a delta":               {[]byte{con, post, 0, 1, 0xe0, 0}, malformed},
		"a length beyond the end":       {[]byte{con, post, 0, 1, 0x0e, 0xff}, malformed},
		"a length far beyond the end":   {raw(con, post, 0, 1, 0xbe, 0xff, 0xff), malformed},
		"three bytes":                   {[]byte{con, post, 0}, malformed},
		"nothing":                       {nil, malformed},
		"an option of 2,000 bytes":      {append([]byte{con, post, 0, 1, 0xbe, 7, 0xd0 - 13}, make([]byte, 2000)...), malformed},
		"a message as long as may be":   {append(make([]byte, 0, 2048), append([]byte{con, post, 0, 1, 0xff}, make([]byte, 2043)...)...), GuardCjVerdictCJ_PAYLOAD},
		"a message of one byte more":    {append(make([]byte, 0, 2049), append([]byte{con, post, 0, 1, 0xff}, make([]byte, 2044)...)...), large},
		"a message that go-coap writes": {b.post(payload[1:]), passed},
	} {
		b.expect(name, c.message, c.want)
	}
}

// TestRandomMessages compares with go-coap what passes: random messages, and each of them damaged before its payload.
func TestRandomMessages(t *testing.T) {
	b := newBench(t, 1)
	payload := pair(t, sign(t, b.secrets[0], claims))
	passed, refused := 0, 0
	for range 3000 {
		var options message.Options
		for range b.random.IntN(6) {
			id := message.OptionID(b.random.IntN(1 << (4 + b.random.IntN(13))))
			options = options.Add(message.Option{ID: id, Value: b.bytes(b.random.IntN(1 << b.random.IntN(9)))})
		}
		whole := encode(t, message.Message{
			Type: message.Type(b.random.IntN(2)), Code: codes.Code(1 + b.random.IntN(7)), MessageID: int32(b.random.IntN(65536)),
			Token: b.bytes(b.random.IntN(9)), Options: options, Payload: payload,
		})
		start := whole[:len(whole)-len(payload)]
		for i := range 4 {
			if i > 0 {
				start = b.damageBytes(start)
			}
			whole := append(bytes.Clone(start), payload...)
			want := readsMessage(whole, payload)
			if got := b.judge(whole); (got == GuardCjVerdictCJ_PASSED) != want {
				t.Fatalf("%x: verdict %s, but go-coap finds the payload: %v", whole, verdictName(got), want)
			}
			if want {
				passed++
			} else {
				refused++
			}
		}
	}
	if passed < 3000 || refused < 2000 {
		t.Errorf("%d passed and %d were refused: too few of either", passed, refused)
	}
}

// readsMessage says whether go-coap reads a message as a request with this payload, and it is not a part of one.
func readsMessage(whole, payload []byte) bool {
	m := message.Message{Options: make(message.Options, 0, 2048)}
	n, err := coder.DefaultCoder.Decode(whole, &m)
	if err != nil || n != len(whole) || !bytes.Equal(m.Payload, payload) {
		return false
	}
	for _, o := range m.Options {
		if isPart(o) {
			return false
		}
	}
	return m.Code > 0 && m.Code < 32 && (m.Type == message.Confirmable || m.Type == message.NonConfirmable)
}

func isPart(o message.Option) bool {
	if o.ID != message.Block1 && o.ID != 19 {
		return false
	}
	value := 0
	for _, b := range o.Value {
		value = value<<8 | int(b)
	}
	return len(o.Value) > 3 || value >= 8
}
