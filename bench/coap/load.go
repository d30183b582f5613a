package coap

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	clients  = 16
	patience = 100 * time.Millisecond // for an answer in the closed loop, and for the last ones in the open loop
	pause    = 500 * time.Microsecond // between bursts in the open loop
	changed  = 0x44                   // the code of a right answer, 2.04
)

// number makes a request the n-th of a socket. The server takes a message whose ID it knows for a repetition, so there are at most 65,536 for each.
func number(request []byte, n int) {
	binary.BigEndian.PutUint16(request[messageAt:], uint16(n))
	binary.BigEndian.PutUint32(request[tokenAt:], uint32(n))
}

// isRight says whether this answers the request: it is valid.
func isRight(answer, request []byte) bool {
	return len(answer) > tokenAt+4 && answer[1] == changed && bytes.Equal(answer[tokenAt:tokenAt+4], request[tokenAt:tokenAt+4])
}

// closed has each client ask again when it was answered. Returns how many were answered per second.
func (s *site) closed(ctx context.Context, d time.Duration) (float64, error) {
	conns, err := s.dial(clients)
	if err != nil {
		return 0, err
	}
	defer closeAll(conns)
	var answered atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for _, conn := range conns {
		all.Go(func() {
			request, buffer := bytes.Clone(s.valid), make([]byte, 2048)
			for n := 0; time.Since(begin) < d && ctx.Err() == nil; n++ {
				number(request, n)
				_ = conn.SetReadDeadline(time.Now().Add(patience))
				if _, err := conn.Write(request); err != nil {
					continue
				}
				for { // what comes first may answer an earlier request
					got, err := conn.Read(buffer)
					if err != nil {
						break
					}
					if isRight(buffer[:got], request) {
						answered.Add(1)
						break
					}
				}
			}
		})
	}
	all.Wait()
	rate := float64(answered.Load()) / time.Since(begin).Seconds()
	if rate == 0 {
		return 0, errors.Join(ctx.Err(), errors.New("the server answers no request"))
	}
	return rate, nil
}

// An outcome is what came of an open loop.
type outcome struct {
	answered float64 // the share of the valid requests
	forged   float64 // requests that were sent per second
}

// open sends valid and forged requests at these rates, whether they are answered or not.
func (s *site) open(ctx context.Context, valid, forged float64, d time.Duration) (o outcome, err error) {
	conns, err1 := s.dial(clients)
	others, err2 := s.dial(clients)
	defer closeAll(conns)
	defer closeAll(others)
	if err := errors.Join(err1, err2); err != nil {
		return o, err
	}
	var answered atomic.Int64
	var reading, sending sync.WaitGroup
	for _, conn := range conns {
		reading.Go(func() { answered.Add(count(conn)) })
	}
	sent := 0
	sending.Go(func() { sent, _ = send(ctx, conns, s.valid, valid, d) })
	sending.Go(func() {
		n, took := send(ctx, others, s.forged, forged, d)
		o.forged = float64(n) / took.Seconds()
	})
	sending.Wait()
	time.Sleep(patience)
	for _, conn := range conns {
		_ = conn.SetReadDeadline(time.Now())
	}
	reading.Wait()
	o.answered = float64(answered.Load()) / float64(max(1, sent))
	return o, ctx.Err()
}

// count counts the right answers that a socket gets until its deadline. What is right for valid requests is an answer that the server has to no other.
func count(conn net.Conn) (n int64) {
	for buffer := make([]byte, 2048); ; {
		got, err := conn.Read(buffer)
		switch {
		case err == nil && got > tokenAt && buffer[1] == changed:
			n++
		case errors.Is(err, net.ErrClosed), err != nil && isTimeout(err):
			return n
		}
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// send sends a request at a rate, from the sockets in turn. Returns how often, and how long it took: longer than d where it did not keep up.
func send(ctx context.Context, conns []net.Conn, request []byte, rate float64, d time.Duration) (sent int, took time.Duration) {
	request = bytes.Clone(request)
	for begin := time.Now(); took < d && ctx.Err() == nil; time.Sleep(pause) {
		took = time.Since(begin)
		for due := int(rate * min(took, d).Seconds()); sent < due; sent++ {
			number(request, sent/len(conns))
			_, _ = conns[sent%len(conns)].Write(request) // what is refused here is not answered, too
		}
		took = time.Since(begin)
	}
	return sent, took
}
