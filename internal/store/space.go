package store

import (
	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sys/unix"
)

// etcd ends its process when a write finds the disk full. So its files get their blocks beforehand, and a full disk only affects
// changes that need more: a function can be removed on a disk without a free byte.
//
// etcd itself preallocates its log, a segment and the next one. Its default of 64 MB each is for many writers; one of our writes
// takes a few KiB, and a segment grows where a write takes more.
func init() { wal.SegmentSizeBytes = 4 << 20 }

// reserve allocates the blocks of etcd's database, a file with holes that grows by 16 MiB at a time. Where the file system cannot do
// that, or has too little space, the file stays as it is.
func (s *Store) reserve() {
	if s.data == nil {
		return
	}
	if info, err := s.data.Stat(); err == nil {
		_ = unix.Fallocate(int(s.data.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, info.Size())
	}
}
