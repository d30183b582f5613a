package memcached

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/lambdanic/lambdanic/internal/xdp"
)

// run has the NIC program answer a request in a packet that has a page, as from a driver. Returns the reply and the XDP action.
func (s *site) run(request string) (reply string, action uint32) {
	s.t.Helper()
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{127, 0, 0, 2}, DstIP: net.IP{127, 0, 0, 1}}
	udp := &layers.UDP{SrcPort: 40000, DstPort: layers.UDPPort(s.server.Port)}
	packet, out := gopacket.NewSerializeBuffer(), make([]byte, 2048)
	err := gopacket.SerializeLayers(packet, gopacket.SerializeOptions{FixLengths: true}, eth, ip, udp, gopacket.Payload(append(frame(1), request...)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.in(func() error {
		action, err = s.cache.objects.McAnswer.Run(&ebpf.RunOptions{Data: packet.Bytes(), DataOut: out})
		return err
	})
	const l4, payload = 14 + 20, 14 + 20 + 8
	if action != xdp.TX {
		return "", action
	}
	return string(out[payload:][8 : binary.BigEndian.Uint16(out[l4+4:])-8]), action
}

// TestPacketsOfAPage compares replies of all lengths that packets have with memcached's.
func TestPacketsOfAPage(t *testing.T) {
	s := newSite(t)
	s.attach()
	tcp := s.dial()
	for i, c := range []struct{ key, value int }{
		{1, 0}, {1, 23}, {1, 24}, {16, 16}, {1, 500}, {1, 955}, {1, 956}, {1, 957}, {1, 1200}, {1, 1350}, {250, 0}, {250, 900}, {250, 1000}, {250, 1090},
	} {
		key := strings.Repeat(string(rune('a'+i)), c.key)
		s.text(tcp, fmt.Sprintf("set %s %d 0 %d\r\n%s\r\n", key, uint32(i)*300_000_000, c.value, strings.Repeat("v", c.value)), "STORED\r\n")
		for _, command := range []string{"get", "gets"} {
			request := fmt.Sprintf("%s %s\r\n", command, key)
			want := s.text(tcp, request, "END\r\n")
			reply, action := s.run(request)
			for begin := time.Now(); action == xdp.Pass && time.Since(begin) < 20*time.Second; reply, action = s.run(request) {
				time.Sleep(time.Millisecond) // until the worker has fetched it
			}
			if reply != want {
				t.Errorf("%s of %d bytes, value of %d: action %d, answered with %.60q, want %.60q", command, c.key, c.value, action, reply, want)
			}
		}
	}
}
