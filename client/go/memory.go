package lambdanic

import "github.com/lambdanic/lambdanic/api"

const noLimit = int(^uint(0) >> 1)

// bytesSource is a request that is in memory.
type bytesSource struct {
	body     []byte
	fragSize int
}

func (s *bytesSource) fragment(i int) []byte {
	at := i * s.fragSize
	return s.body[at:min(at+s.fragSize, len(s.body))]
}

func (s *bytesSource) limit() int { return noLimit }

// bytesSink is a reply that is in memory. The memory is reused.
type bytesSink struct{ buf []byte }

func (s *bytesSink) begin(total, _ int) {
	if cap(s.buf) < total {
		s.buf = make([]byte, total)
	}
	s.buf = s.buf[:total]
}

func (s *bytesSink) put(_, offset int, p []byte) { copy(s.buf[offset:], p) }

func (s *bytesSink) limit() int { return noLimit }

// packets says in how many packets a body of n bytes travels, and with how many bytes in each, if one packet can hold single bytes, and
// each of several fragment bytes.
func packets(n, single, fragment int) (count, size int) {
	if n <= single {
		return 1, n
	}
	return api.Fragments(n, fragment), fragment
}
