package ikernels

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// A shard is a message that parity posts.
type shard []byte

const shardHead = 16

func newShard(group uint64, index, count int, length uint32, data []byte) shard {
	s := binary.NativeEndian.AppendUint64(nil, group)
	s = binary.NativeEndian.AppendUint16(s, uint16(index))
	s = binary.NativeEndian.AppendUint16(s, uint16(count))
	return append(binary.NativeEndian.AppendUint32(s, length), data...)
}

// newGroup makes the parity of random datagrams, and these.
func newGroup(rnd *rand.Rand) (all []shard) {
	group, count, length, data := rnd.Uint64(), 1+rnd.IntN(16), uint32(0), []byte(nil)
	all = make([]shard, 1+count)
	for i := range count {
		datagram := make([]byte, rnd.IntN(1<<rnd.IntN(11)))
		for j := range datagram {
			datagram[j] = byte(rnd.Uint32())
		}
		data = append(data, make([]byte, max(0, len(datagram)-len(data)))...)
		for j, b := range datagram {
			data[j] ^= b
		}
		length ^= uint32(len(datagram))
		all[1+i] = newShard(group, i, 0, uint32(len(datagram)), datagram)
	}
	all[0] = newShard(group, count, count, length, data)
	return all
}

// spoil makes one thing wrong, or nothing.
func spoil(rnd *rand.Rand, all []shard) []shard {
	i := rnd.IntN(len(all))
	s := &all[i]
	switch rnd.IntN(8) {
	case 0: // another head
		(*s)[rnd.IntN(shardHead)] ^= 1 << rnd.IntN(8)
	case 1: // too short
		*s = (*s)[:rnd.IntN(len(*s)+1)]
	case 2: // too long
		*s = append(*s, byte(rnd.Uint32()))
	case 3: // twice
		all = append(all, *s)
	case 4: // another is missing
		all = append(all[:i:i], all[i+1:]...)
	case 5: // another length, and data to it
		n := uint32(rnd.IntN(3000))
		binary.NativeEndian.PutUint32((*s)[12:], n)
		*s = append((*s)[:shardHead:shardHead], make([]byte, n)...)
	}
	return all
}

// rebuilt is what Go makes of a line.
func rebuilt(all []shard) string {
	shards := make([]lambdanic.Shard, len(all))
	for i, s := range all {
		var err error
		if shards[i], err = lambdanic.ParseShard(s); err != nil {
			return "refused"
		}
	}
	if len(shards) == 0 {
		return "refused"
	}
	lost, err := shards[0].Rebuild(shards[1:])
	if err != nil {
		return "refused"
	}
	return fmt.Sprintf("%d %d x%x", lost.Group, lost.Index, lost.Data)
}

// TestShards rebuilds datagrams of random groups in each language, as Go does. Where something is wrong with a group, all refuse or make the same of it.
func TestShards(t *testing.T) {
	if err := build(); err != nil {
		t.Fatal(err)
	}
	const groups = 2000
	rnd := rand.New(rand.NewPCG(1, 2))
	var lines, want strings.Builder
	refused := 0
	for n := range groups {
		all := newGroup(rnd)
		rnd.Shuffle(len(all)-1, func(i, j int) { all[1+i], all[1+j] = all[1+j], all[1+i] })
		lost := all[len(all)-1]
		all = all[:len(all)-1]
		if n%2 > 0 {
			all = spoil(rnd, all)
		}
		got := rebuilt(all)
		if n%2 == 0 && got != fmt.Sprintf("%d %d x%x", binary.NativeEndian.Uint64(lost), binary.NativeEndian.Uint16(lost[8:]), lost[shardHead:]) {
			t.Fatalf("Go makes %s of a group that lacks %x", got, lost)
		}
		if got == "refused" {
			refused++
		}
		for i, s := range all {
			fmt.Fprintf(&lines, "%sx%x", " "[:min(i, 1)], []byte(s))
		}
		fmt.Fprintln(&lines)
		fmt.Fprintln(&want, got)
	}
	if refused < groups/8 || refused > groups/2 {
		t.Errorf("%d groups are refused", refused)
	}
	for name, args := range programs("shards") {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env = (&site{t: t}).command(nil, args...).Env
			cmd.Stdin = strings.NewReader(lines.String())
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || stderr.Len() > 0 {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			got, want := strings.Split(string(out), "\n"), strings.Split(want.String(), "\n")
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Fatalf("group %d of %d becomes %.200q, want %.200q", i, len(got), got[i:min(i+1, len(got))], want[i])
				}
			}
		})
	}
}
