package nic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// manyFields is the web server of compiler/p4/testdata with two more headers of 30 words behind its job, which the answer mixes, and
// with TCP, which no UDP datagram reaches. It uses 60 words and their original values at once.
func manyFields(t *testing.T) map[string][]byte {
	t.Helper()
	var fields, sum, mix strings.Builder
	for i := range 30 {
		fmt.Fprintf(&fields, "w%d : 32;\n", i)
		fmt.Fprintf(&sum, "words.w%d;\nmore.w%d;\n", i, i)
		fmt.Fprintf(&mix, "modify_field(words.w%d, more.w%d);\nmodify_field(more.w%d, words.w%d);\n", i, 29-i, i, (i+1)%30)
	}
	files := stageFiles(t, "web_server",
		"job.data;", "job.data;\n"+sum.String(),
		"modify_field(udp.dstPort, udp.srcPort);", mix.String()+"modify_field(udp.dstPort, udp.srcPort);")
	for name, change := range map[string][]string{
		"headers.p4": {"header_type tmp_t", "header_type words_t { fields {\n" + fields.String() + "} }\n" +
			"header_type tcp_t { fields { srcPort : 16; dstPort : 16; seq : 32; ack : 32; rest : 64; } }\n" +
			"header words_t words;\nheader words_t more;\nheader tcp_t tcp;\nheader_type tmp_t"},
		"parser.p4": {
			"PROTOCOL_UDP : parse_udp;", "PROTOCOL_UDP : parse_udp;\n6 : parse_tcp;",
			"extract(job);\n    return ingress;", "extract(job);\nreturn parse_words;",
			"parser parse_udp", "parser parse_tcp { extract(tcp); set_metadata(tmp.port, latest.dstPort);\n" +
				"return select (latest.dstPort) { JOB_PORT : parse_words; default : ingress; } }\n" +
				"parser parse_words { extract(words); return parse_more; }\nparser parse_more { extract(more); return ingress; }\nparser parse_udp",
		},
	} {
		files[name] = []byte(strings.NewReplacer(change...).Replace(string(files[name])))
	}
	return files
}

// A match stage with more fields in use than the kernel's stack holds changes each in the order of its actions, and its checksum covers
// them all.
func TestStageOfManyFields(t *testing.T) {
	n := newTestNIC(t)
	a, err := buildFiles(manyFields(t))
	if err != nil {
		t.Fatal(err)
	}
	deploy(t, n, deployment(a, stageID, 1))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		words := make([]uint32, 60)
		for i := range words {
			words[i] = rng.Uint32() >> (rng.IntN(2) * 31) // some fields stay as they are
		}
		request := jobFrame(t, 0, jobPort)
		verdict, out := inject(t, n, behindJob(t, request, words))
		if verdict != "reply" {
			t.Fatalf("verdict %s", verdict)
		}
		first, more := words[:30], words[30:]
		for i := range 30 {
			first[i] = more[29-i]
			more[i] = first[(i+1)%30]
		}
		answer := gopacket.NewPacket(out, layers.LayerTypeEthernet, gopacket.NoCopy)
		payload := answer.ApplicationLayer().Payload()
		if want := wordBytes(words); !bytes.Equal(payload[20:], want) {
			t.Fatalf("fields\n%x, want\n%x", payload[20:], want)
		}
		sum := binary.BigEndian.Uint16(out[40:])
		if want := behindJob(t, out[:len(out)-240], words); sum != binary.BigEndian.Uint16(want[40:]) {
			t.Errorf("checksum %#x, want %x", sum, want[40:42])
		}
	}
}

// behindJob is a frame with words behind its payload, and checksums that gopacket computes.
func behindJob(t *testing.T, frame []byte, words []uint32) []byte {
	t.Helper()
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	ip, udp := p.NetworkLayer().(*layers.IPv4), p.TransportLayer().(*layers.UDP)
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	payload := append(bytes.Clone(frame[42:]), wordBytes(words)...)
	b := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(b, options, p.LinkLayer().(*layers.Ethernet), ip, udp, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func wordBytes(words []uint32) (all []byte) {
	for _, w := range words {
		all = binary.BigEndian.AppendUint32(all, w)
	}
	return all
}
