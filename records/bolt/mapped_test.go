package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// entries reads all values of a bucket and returns their total size.
func entries(t *testing.T, db *DB, bucket []byte) (n int) {
	t.Helper()
	err := db.view(func(tx *txn) error {
		return tx.table(bucket).each(func(_, value []byte, err error) error {
			n += len(value)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPagesThatWereGivenBackAreReadAgain(t *testing.T) {
	db, err := Open(filepath.Join(t.TempDir(), "r.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for round := range 3 {
		fill := func(tx *txn) (err error) {
			for i := range 500 {
				err = errors.Join(err, tx.put(bucketWorkloads, fmt.Append(nil, round, i), make([]byte, 1000)))
			}
			return err
		}
		if err := db.maintain(fill).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		db.touch(maxMappedBytes)
		if got, want := entries(t, db, bucketWorkloads), (round+1)*500*1000; got != want {
			t.Errorf("round %d: %d bytes, want %d", round, got, want)
		}
	}
}

// AddressesProcessEnv makes this binary run AddressesProcess; see TestMain.
const AddressesProcessEnv = "TILTH_TEST_ADDRESSES"

// AddressesProcess opens a file that exceeds the process's address space limit.
func AddressesProcess(path string) {
	err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: 8 << 30, Max: 8 << 30})
	if err == nil {
		var db *DB
		if db, err = Open(path, Options{ReserveBytes: 64 << 30}); err == nil {
			err = db.Close()
		}
	}
	fmt.Print(err)
}

func TestFileOpensWithoutReservedAddresses(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), AddressesProcessEnv+"="+filepath.Join(t.TempDir(), "r.db"))
	if out, err := cmd.Output(); err != nil || string(out) != "<nil>" {
		t.Errorf("the process said %q, %v", out, err)
	}
}

// TestFreeBytesAreReportedWhileTheFileGrows reads the metric concurrently, also while the file is remapped.
func TestFreeBytesAreReportedWhileTheFileGrows(t *testing.T) {
	db, err := Open(filepath.Join(t.TempDir(), "r.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			if n := db.FreeBytes(); n < 0 {
				t.Errorf("%d bytes are free", n)
			}
		}
	})
	for round := range 20 {
		fill := func(tx *txn) error { return tx.put(bucketWorkloads, fmt.Append(nil, round), make([]byte, 100_000)) }
		if err := db.maintain(fill).Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop()
	asking.Wait()
}
