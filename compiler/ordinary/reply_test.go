package ordinary_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/rig"
)

const text = 6000 // bytes of reply_from's, without the spare ones

// textOf is the expected answer of the lambda.
func textOf(at, n uint32) (reply []byte) {
	for i := range n {
		reply = append(reply, byte((at+i)*37>>3))
	}
	return reply
}

// lambda_reply_from() answers with the whole range of the array that was asked for, in packets of any size: with the code for short replies
// and for long ones, in one packet and in several.
func TestReplyFrom(t *testing.T) {
	for _, name := range []string{"reply_from", "reply_assembled"} {
		t.Run(name, func(t *testing.T) {
			r := put(t, name)
			nic, process := r.Endpoints()
			for place, addr := range map[string]string{"NIC": nic, "process": process} {
				c, err := lambdanic.DialConn(addr, lambdanic.WithTimeout(time.Minute))
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range []uint32{
					0, 1, 7, 8, 31, 32, 33, 479, 480, 481, 511, 512, 513, api.RPCFragment - 1, api.RPCFragment, api.RPCFragment + 1,
					api.RPCMaxPayload - 1, api.RPCMaxPayload, api.RPCMaxPayload + 1, 2 * api.RPCFragment, 4000,
				} {
					for _, at := range []uint32{0, 33, text - n} {
						for _, room := range []int{8, 64, api.RPCMaxPayload} {
							if int(n) > 40*room {
								continue
							}
							reply, err := c.Call(t.Context(), lambdanic.Request{Workload: rig.Workload, Body: words(at, n), ReplyRoom: room})
							if err != nil || !bytes.Equal(reply.Body, textOf(at, n)) {
								t.Fatalf("%s: %d bytes from %d, %d in a packet: %v, %d bytes", place, n, at, room, err, len(reply.Body))
							}
						}
					}
				}
				for _, part := range [][]byte{words(text+api.RPCMaxPayload, 1), words(1<<31, 1), words(0xffffffff, 2)} {
					var refused *lambdanic.RPCError
					if _, err := c.Call(t.Context(), lambdanic.Request{Workload: rig.Workload, Body: part}); !errors.As(err, &refused) || refused.Code != api.CodeLambdaFault {
						t.Errorf("%s: a part that is not there: %v", place, err)
					}
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
