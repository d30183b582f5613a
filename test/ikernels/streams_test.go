package ikernels

import "testing"

// TestStreams has an application in each language attach a TCP connection, and then a socket that listens.
func TestStreams(t *testing.T) {
	const uses = `got 150
limit=100 offset=0 sum=100 count=2 alerts=1
the socket has an ikernel: detach it first
got 50
the socket is not attached to this ikernel: a connection that was accepted is detached with the socket that listens
`
	expectOutputOf(t, "streams", uses+uses+"this ikernel takes datagrams only: attach a UDP socket: operation not supported\n")
}
