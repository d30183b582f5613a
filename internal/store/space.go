package store

import (
	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sys/unix"
)

// etcd ends its process when a write finds the disk full. So what it writes to has its blocks beforehand, and a full disk is met by
// those who ask for more: a function can be removed on a disk without a free byte.
//
// etcd preallocates its log by itself, a segment and the next one. Its 64 MB for each are for many writers; one of our writes
// takes a few KiB, and a segment grows where one takes more.
func init() { wal.SegmentSizeBytes = 4 << 20 }

// reserve allocates the blocks of etcd's database, a file with holes that grows by 16 MiB at a time. Where the file system cannot do
// that, or has too little space by now, it stays as it is.
func (s *Store) reserve() {
	if s.data == nil {
		return
	}
	if info, err := s.data.Stat(); err == nil {
		_ = unix.Fallocate(int(s.data.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, info.Size())
	}
}
