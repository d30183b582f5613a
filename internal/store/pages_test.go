package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// smallDatabase is a database with all kinds of pages: branches, leaves, one that overflows, small buckets and large ones.
func smallDatabase(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 1024})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{40, 200} { // twice, so that pages get free
		err := db.Update(func(tx *bolt.Tx) error {
			for _, name := range []string{"empty", "small", "large"} {
				b, err := tx.CreateBucketIfNotExists([]byte(name))
				if err != nil {
					return err
				}
				for i := range map[string]int{"small": 2, "large": n}[name] {
					if err := b.Put(fmt.Appendf(nil, "%04d", i), make([]byte, 10*i)); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCheckPages(t *testing.T) {
	file := smallDatabase(t)
	if err := checkPages(file); err != nil {
		t.Error(err)
	}
	for size := range 64 { // of 64
		if err := checkPages(file[:len(file)*size/64]); err == nil && len(file)*size/64 < len(file)/2 {
			t.Errorf("%d of %d bytes will do", len(file)*size/64, len(file))
		}
	}
}

// What is let through, bbolt reads to the end, whatever it is.
func FuzzCheckPages(f *testing.F) {
	base := smallDatabase(f)
	f.Add(uint32(0), []byte(nil), uint32(len(base)))
	f.Add(uint32(16), []byte{1}, uint32(len(base)))
	f.Add(uint32(3*1024+8), []byte{1, 0, 255}, uint32(len(base)))
	f.Fuzz(func(t *testing.T, at uint32, with []byte, size uint32) {
		file := append([]byte(nil), base...)
		copy(file[int(at)%len(file):], with)
		file = file[:min(len(file), int(size))]
		if checkPages(file) != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := bolt.Open(path, 0, &bolt.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		err = db.View(func(tx *bolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
				return b.ForEach(func(_, _ []byte) error { return nil })
			})
		})
		if err != nil {
			t.Error(err)
		}
	})
}
