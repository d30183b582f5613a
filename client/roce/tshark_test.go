package roce

import (
	"bytes"
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/lambdanic/lambdanic/api/roce"
)

// What tshark reads in our packets is what we meant to write.
func TestTshark(t *testing.T) {
	name := filepath.Join(t.TempDir(), "capture.pcap")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := pcapgo.NewWriter(file)
	if err := w.WriteFileHeader(65535, layers.LinkTypeRaw); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range scapys(t) {
		whole := unhex(t, s.Packet)
		path, payload := pathOf(t, whole)
		p := s.packet(t)
		copy(payload, path.Seal(p.Append(nil)))
		info := gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(whole), Length: len(whole)}
		if err := w.WritePacket(info, whole); err != nil {
			t.Fatal(err)
		}
		want = append(want, described(&p, path.ICRC(payload[:len(payload)-roce.ICRCLen])))
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	args := []string{"-n", "-r", name, "-T", "fields", "-E", "separator= "}
	for _, f := range []string{
		"bth.opcode", "bth.padcnt", "bth.p_key", "bth.destqp", "bth.a", "bth.psn", "reth.va", "reth.r_key", "reth.dmalen", "immdt", "aeth.syndrome", "aeth.msn",
		"invariant.crc",
	} {
		args = append(args, "-e", "infiniband."+f)
	}
	cmd := exec.CommandContext(t.Context(), "tshark", args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // no preferences of whoever runs this
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, &stderr)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("packet %d: tshark says\n%s, want\n%s", i, got[min(i, len(got)-1)], want[i])
		}
	}
}

// described is a packet as tshark prints its fields.
func described(p *Packet, crc uint32) string {
	reth, imm, aeth := "  ", "", " "
	if p.Op.HasRETH() {
		reth = fmt.Sprintf("0x%016x 0x%08x %d", p.VA, p.RKey, p.DMALen)
	}
	if p.Op.HasImm() {
		imm = fmt.Sprintf("%08x,%08x", p.Imm, p.Imm) // tshark has it twice, as a header and as its field
	}
	if p.Op == roce.OpAck {
		aeth = fmt.Sprintf("%d %d", p.Syndrome, p.MSN)
	}
	ack := map[bool]int{true: 1}[p.AckReq]
	icrc := fmt.Sprintf("0x%08x", bits.ReverseBytes32(crc))
	if p.Service == roce.ServiceRC && p.Op == roce.OpSendOnly && len(p.Payload) == 0 {
		icrc = "" // there tshark looks for it behind a payload
	}
	return fmt.Sprintf("%d %d %d 0x%06x %d %d %s %s %s %s", uint8(p.Service)|uint8(p.Op), -len(p.Payload)&3, roce.PKey, p.DestQP, ack, p.PSN, reth, imm, aeth, icrc)
}
