package swap

import (
	"strings"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

const (
	key   = "swap"
	value = "a value that stays the same"
)

// webServer asks for a page of one packet, and now and then for one of two, whose second packet is pulled.
func webServer() scenario {
	const line, changed = "All work and no sleep", "All play and no sleep"
	const rest = " makes a lambda answer in microseconds. 0123\n"
	long := [2][]byte{[]byte(strings.Repeat(line+rest, 30)), []byte(strings.Repeat(changed+rest, 30))}
	hello := [2][]byte{[]byte("Hello from the NIC.\n"), []byte("Howdy from the NIC.\n")}
	return scenario{
		lambda: "web_server", total: func() int { return *requests },
		replace: []string{line, changed, "Hello from", "Howdy from"},
		request: func(i int) lambdanic.Request {
			if i%64 == 0 {
				return lambdanic.Request{Workload: 1, Body: []byte("/long"), ReplyRoom: 1408}
			}
			return lambdanic.Request{Workload: 1, Body: []byte("/hello"), ReplyRoom: 64}
		},
		answer: func(req lambdanic.Request, second int) []byte {
			if string(req.Body) == "/long" {
				return long[second]
			}
			return hello[second]
		},
	}
}

// kvClient asks for a value; the second revision puts a colon where the first puts an equals sign.
func kvClient() scenario {
	answers := [2][]byte{[]byte(key + "=" + value), []byte(key + ":" + value)}
	return scenario{
		lambda: "kv_client", total: func() int { return *requests },
		replace: []string{`"="`, `":"`},
		request: func(int) lambdanic.Request { return lambdanic.Request{Workload: 1, Body: []byte(key), ReplyRoom: 64} },
		answer:  func(_ lambdanic.Request, second int) []byte { return answers[second] },
	}
}

// imageTransformer turns 256x256 pixels grey, in 191 packets; the second revision rounds another way.
func imageTransformer() scenario {
	rgba := make([]byte, 4*256*256)
	for i := range rgba {
		rgba[i] = byte(i * 2654435761 >> 13)
	}
	answers := [2][]byte{grey(rgba, 128), grey(rgba, 0)}
	return scenario{
		lambda: "image_transformer", total: func() int { return *images },
		replace: []string{"#define HALF 0x0080008000800080ULL", "#define HALF 0ULL"},
		request: func(int) lambdanic.Request { return lambdanic.Request{Workload: 1, Body: rgba} },
		answer:  func(_ lambdanic.Request, second int) []byte { return answers[second] },
	}
}

// grey is ITU-R BT.601 luma in integers.
func grey(rgba []byte, round int) []byte {
	out := make([]byte, len(rgba)/4)
	for i := range out {
		p := rgba[4*i:]
		out[i] = byte((77*int(p[0]) + 150*int(p[1]) + 29*int(p[2]) + round) >> 8)
	}
	return out
}
