package lambdanic

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A Shard is a copy of a datagram by the ikernel parity, or the parity of a group of them.
type Shard struct {
	Group uint64
	Index int // of the datagram in its group
	Count int // 0: this is a datagram; or else it is the parity of so many
	Data  []byte

	length int // of the datagram; of a parity, what the lengths of all XOR to
}

const shardHead = 16 // struct parity_head: group, index, count, length

// ParseShard reads what parity posts to a ring. The shard has its data where the message has it.
func ParseShard(message []byte) (Shard, error) {
	if len(message) < shardHead {
		return Shard{}, fmt.Errorf("a message of %d bytes is no shard: is the ring one of parity?", len(message))
	}
	s := Shard{
		Group: binary.NativeEndian.Uint64(message), Index: int(binary.NativeEndian.Uint16(message[8:])),
		Count: int(binary.NativeEndian.Uint16(message[10:])), Data: message[shardHead:],
		length: int(binary.NativeEndian.Uint32(message[12:])),
	}
	if s.Count == 0 && s.length != len(s.Data) {
		return Shard{}, fmt.Errorf("a shard of %d bytes says that it has %d: is the ring one of parity?", len(s.Data), s.length)
	}
	return s, nil
}

// Rebuild makes the datagram that is missing of a group from its parity and all others, in any order.
func (s Shard) Rebuild(others []Shard) (Shard, error) {
	if s.Count == 0 {
		return Shard{}, errors.New("rebuild a shard: only a parity can")
	}
	missing, err := s.missing(others)
	if err != nil {
		return Shard{}, err
	}
	lost := Shard{Group: s.Group, Index: missing, Data: append([]byte(nil), s.Data...), length: s.length}
	for _, o := range others {
		if len(o.Data) > len(lost.Data) {
			return Shard{}, fmt.Errorf("rebuild shard %d of group %d: shard %d is longer than the parity", missing, s.Group, o.Index)
		}
		lost.length ^= len(o.Data)
		for i, b := range o.Data {
			lost.Data[i] ^= b
		}
	}
	if lost.length > len(lost.Data) {
		return Shard{}, fmt.Errorf("rebuild shard %d of group %d: the shards do not belong together", missing, s.Group)
	}
	lost.Data = lost.Data[:lost.length]
	return lost, nil
}

// missing is the index of the one datagram of a parity's group that is not among others.
func (s Shard) missing(others []Shard) (int, error) {
	has := make([]bool, s.Count)
	for _, o := range others {
		if o.Group != s.Group || o.Count != 0 || o.Index >= s.Count || has[o.Index] {
			return 0, fmt.Errorf("rebuild a shard of group %d: shard %d of group %d is none of the others", s.Group, o.Index, o.Group)
		}
		has[o.Index] = true
	}
	if len(others) != s.Count-1 {
		return 0, fmt.Errorf("rebuild a shard of group %d: there are %d others, and it takes %d", s.Group, len(others), s.Count-1)
	}
	for i, ok := range has {
		if !ok {
			return i, nil
		}
	}
	panic("all are there, and one is not")
}
