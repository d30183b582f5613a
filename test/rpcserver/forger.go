package rpcserver

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"

	"github.com/lambdanic/lambdanic/api"
)

// A Forgery is a packet that is no part of a call's answer. Clients count it as malformed.
type Forgery struct {
	Name   string
	Long   bool // the call's request has two packets
	stray  bool // clients count it as that instead
	header func(*api.Header)
	wire   func([]byte) []byte
}

// Forgeries are those that a Forger sends for the methods 0, 1 and so on.
var Forgeries = []Forgery{
	{Name: "an empty packet", wire: func([]byte) []byte { return nil }},
	{Name: "less than a header", wire: func(p []byte) []byte { return p[:api.RPCHeaderLen-1] }},
	{Name: "another magic", wire: func(p []byte) []byte { p[0]++; return p }},
	{Name: "another version", wire: func(p []byte) []byte { p[2]++; return p }},
	{Name: "fewer bytes than its length", wire: func(p []byte) []byte { return p[:len(p)-1] }},
	{Name: "no type", header: func(h *api.Header) { h.Type = 0 }},
	{Name: "an unknown type", header: func(h *api.Header) { h.Type = api.TypeError + 1 }},
	{Name: "a pull", header: func(h *api.Header) { h.Type = api.TypePull }},
	{Name: "another call's", header: func(h *api.Header) { h.Request++ }, stray: true},
	{Name: "another workload's", header: func(h *api.Header) { h.Workload++ }},
	{Name: "an index beyond the count", header: func(h *api.Header) { h.Index = h.Count }},
	{Name: "fewer bytes than the message", header: func(h *api.Header) { h.MessageLen = 1 << 31 }},
	{Name: "an acknowledgement of a single packet", header: func(h *api.Header) { h.Type, h.Length = api.TypeAck, 8 }},
	{Name: "half an acknowledgement", header: func(h *api.Header) { h.Type, h.Length = api.TypeAck, 4 }, Long: true},
	{Name: "an acknowledgement of a third packet", header: func(h *api.Header) { h.Type, h.Length, h.Index = api.TypeAck, 8, 2 }, Long: true},
	{Name: "the second part of three", header: func(h *api.Header) { h.Index, h.Count, h.MessageLen = 1, 3, 3*uint32(h.Length) }, Long: true},
	{Name: "a part that nobody pulled", header: func(h *api.Header) { h.Index = 1 }, Long: true},
}

// A Forger answers every call with a forgery, and then with the request.
type Forger struct {
	server, stranger *net.UDPConn
}

// StartForger starts one on this machine.
func StartForger() (*Forger, error) {
	f := new(Forger)
	for _, conn := range []**net.UDPConn{&f.server, &f.stranger} {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, fmt.Errorf("rpcserver: %w", err)
		}
		*conn = c
	}
	go f.serve()
	return f, nil
}

// Addr is where it listens.
func (f *Forger) Addr() string { return f.server.LocalAddr().String() }

// Close stops it.
func (f *Forger) Close() {
	f.server.Close()
	f.stranger.Close()
}

// Body is that of a request that gets the forgery, and of its answer.
func (f *Forgery) Body() []byte {
	if f.Long {
		return bytes.Repeat([]byte("genuine "), 2*api.RPCFragment/8)
	}
	return []byte("genuine")
}

// Counts are how many stray and malformed packets a client counts.
func (f *Forgery) Counts() (stray, malformed uint64) {
	if f.stray {
		return 1, 0
	}
	return 0, 1
}

// packet is a part of an answer.
func packet(h api.Header, body []byte) []byte {
	return append(h.Append(nil), body[:min(int(h.Length), len(body))]...)
}

func (f *Forger) serve() {
	buf := make([]byte, 2048)
	for {
		n, peer, err := f.server.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		h, _, err := api.ParsePacket(buf[:n])
		if err != nil || int(h.Method) >= len(Forgeries) || h.Index > 1 {
			continue
		}
		forgery := &Forgeries[h.Method]
		body := forgery.Body()
		answer := h
		answer.Type, answer.Flags, answer.Count, answer.MessageLen = api.TypeResponse, 0, 1, uint32(len(body))
		if forgery.Long {
			answer.Flags, answer.Count = api.FlagDone, 2
			body = body[h.Index*api.RPCFragment:][:api.RPCFragment]
		}
		answer.Length = uint16(len(body))
		switch {
		case h.Type == api.TypeRequest && h.Index == 0:
			f.forge(peer, forgery, answer)
		case h.Type != api.TypePull:
			continue
		}
		_, _ = f.server.WriteToUDPAddrPort(packet(answer, body), peer)
	}
}

// forge sends two packets that are not the answer: a right one from elsewhere, and the forgery.
func (f *Forger) forge(peer netip.AddrPort, forgery *Forgery, h api.Header) {
	wrong := bytes.Repeat([]byte("forged! "), api.RPCFragment/8)
	_, _ = f.stranger.WriteToUDPAddrPort(packet(h, wrong), peer)
	if forgery.header != nil {
		forgery.header(&h)
	}
	p := packet(h, wrong)
	if forgery.wire != nil {
		p = forgery.wire(p)
	}
	_, _ = f.server.WriteToUDPAddrPort(p, peer)
}
