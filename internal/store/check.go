package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

// ErrDamaged says that a file of the store is damaged.
var ErrDamaged = errors.New("the store is damaged")

// files are the places of a store on disk.
type files struct{ dir string }

func (f files) database() string { return filepath.Join(f.dir, "member", "snap", "db") }
func (f files) log() string      { return filepath.Join(f.dir, "member", "wal") }

// mark is a file of every store that was opened once. Without mark, a store without files is new; with it, the store lost its files.
func (f files) mark() string { return filepath.Join(f.dir, "opened") }

// damaged names the file, its damage and the remedy. A file that cannot be read is not damaged, unless the disk fails.
func (f files) damaged(path string, why error) error {
	if errno := unix.Errno(0); errors.As(why, &errno) && errno != unix.ENOENT && errno != unix.EIO {
		return fmt.Errorf("open the store in %s: %w", f.dir, why)
	}
	return fmt.Errorf("%w: %s: %w: %s", ErrDamaged, path, why, f.remedy())
}

func (f files) remedy() string {
	return fmt.Sprintf("restore the data directory from a backup, or move %s away, run `lambdanic up` and deploy again", f.dir)
}

// setMark marks the store for good.
func (f files) setMark() error {
	mark, err := os.OpenFile(f.mark(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	dir, err := os.Open(f.dir)
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	return errors.Join(err, mark.Close())
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// check looks for damage before etcd meets it: etcd would end the process, wait for ever, or go on with what is left.
func (f files) check() (isNew bool, err error) {
	marked, err1 := exists(f.mark())
	hasData, err2 := exists(f.database())
	hasLog := wal.Exist(f.log())
	if err := errors.Join(err1, err2); err != nil {
		return false, fmt.Errorf("look for the store: %w", err)
	}
	if !hasData && (marked || hasLog) {
		return false, f.damaged(f.database(), fs.ErrNotExist)
	}
	if !hasData {
		return true, nil
	}
	applied, err := f.checkDatabase()
	if err != nil {
		return false, f.damaged(f.database(), err)
	}
	if !hasLog && (marked || applied.index > 0) {
		return false, f.damaged(f.log(), fs.ErrNotExist)
	}
	if !hasLog {
		return true, nil // a first start died
	}
	if err := f.checkLog(applied); err != nil {
		return false, f.damaged(f.log(), err)
	}
	return false, nil
}

// position is how far the log has been applied to the database.
type position struct{ index, term uint64 }

// checkDatabase checks the file's structure and returns its position in the log.
func (f files) checkDatabase() (at position, err error) {
	file, err := os.Open(f.database())
	if err != nil {
		return at, err
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return at, fmt.Errorf("another process has it open: end that one, or choose another directory with --data-dir: %w", err)
	} else if err != nil {
		return at, fmt.Errorf("lock %s: %w", f.database(), err)
	}
	info, err := file.Stat()
	if err != nil {
		return at, err
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(file, data); err != nil {
		return at, err
	}
	if err := checkPages(data); err != nil {
		return at, err
	}
	db, err := bolt.Open(f.database(), 0, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return at, err
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket([]byte("meta"))
		if meta == nil {
			return nil // a first start died
		}
		for key, into := range map[string]*uint64{"consistent_index": &at.index, "term": &at.term} {
			switch v := meta.Get([]byte(key)); len(v) {
			case 0:
			case 8:
				*into = binary.BigEndian.Uint64(v)
			default:
				return fmt.Errorf("%s is not a number", key)
			}
		}
		keys := tx.Bucket([]byte("key"))
		if keys == nil {
			return nil
		}
		return keys.ForEach(checkRevision)
	})
	return at, err
}

// checkRevision checks a key of one revision, on which etcd would panic or compare for ever: "MAIN_SUB", of 8 bytes each, with a "t" where
// it was deleted.
func checkRevision(revision, value []byte) error {
	deleted := len(revision) == 18 && revision[17] == 't'
	if len(revision) != 17 && !deleted || revision[8] != '_' {
		return fmt.Errorf("%x is not a revision", revision)
	}
	main, sub := int64(binary.BigEndian.Uint64(revision)), int64(binary.BigEndian.Uint64(revision[9:]))
	var kv mvccpb.KeyValue
	if err := proto.Unmarshal(value, &kv); err != nil {
		return fmt.Errorf("revision %d: %w", main, err)
	}
	if main < 1 || sub < 0 || !deleted && (kv.ModRevision != main || kv.CreateRevision > main || kv.Version < 1 || kv.Lease != 0) {
		return fmt.Errorf("revision %d of %q contradicts itself", main, kv.Key)
	}
	return nil
}

// checkLog reads the log, and checks that it reaches at least as far as the database. An entry that was being
// written when the power failed may be torn; etcd cuts it off.
func (f files) checkLog(applied position) (err error) {
	defer func() {
		if r := recover(); r != nil { // a record contradicts itself
			err = fmt.Errorf("%v", r)
		}
	}()
	quiet := zap.New(zapcore.NewNopCore(), zap.WithFatalHook(zapcore.WriteThenPanic))
	snaps, err := wal.ValidSnapshotEntries(quiet, f.log())
	if err != nil {
		return err
	}
	begin := &walpb.Snapshot{}
	if len(snaps) > 0 {
		begin = snaps[len(snaps)-1]
	}
	log, err := wal.OpenForRead(quiet, f.log(), begin)
	if err != nil {
		return err
	}
	defer log.Close()
	_, state, entries, err := log.ReadAll()
	if err != nil {
		return err
	}
	last := position{begin.GetIndex(), state.GetTerm()}
	if len(entries) > 0 {
		last.index = entries[len(entries)-1].GetIndex()
	}
	if applied.index > last.index || applied.term > last.term {
		return fmt.Errorf("it ends at entry %d of term %d, but entry %d of term %d was there once", last.index, last.term, applied.index, applied.term)
	}
	return nil
}
