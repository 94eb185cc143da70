package bolt

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// TestFileWithoutDevicesOpens reads and writes a file without the bucket of devices.
func TestFileWithoutDevicesOpens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := Open(path, Options{})
	check(err)
	check(db.Close())
	file, err := bbolt.Open(path, 0o600, nil)
	check(err)
	check(file.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketDevices) }))
	check(file.Close())

	count := func(db *DB) (n int) {
		t.Helper()
		check(db.Devices(func(name string, row *storev1.DeviceRow) {
			if name != "board" || row.GetCordon().GetBy() != "anna" {
				t.Errorf("%s is %v", name, row)
			}
			n++
		}))
		return n
	}
	old, err := OpenReadOnly(path, Options{})
	check(err)
	if n := count(old); n != 0 {
		t.Errorf("a file without the bucket has %d devices", n)
	}
	check(old.Close())
	db, err = Open(path, Options{})
	check(err)
	w := &records.Write{}
	w.PutDevice("board", &storev1.DeviceRow{Cordon: &tilthv1.Cordon{By: "anna"}})
	check(db.Commit(w).Wait(t.Context()))
	if n := count(db); n != 1 {
		t.Errorf("%d devices were kept", n)
	}
	check(db.Close())
}
