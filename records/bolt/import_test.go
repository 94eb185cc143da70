package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

const (
	importProcessEnv = "TILTH_TEST_IMPORT"
	importKillEnv    = "TILTH_TEST_IMPORT_KILL"
)

// importProcess imports records in a child process, which kills itself after a number of synced transactions.
func importProcess(path string) {
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	left, _ := strconv.Atoi(os.Getenv(importKillEnv))
	db.Observe(func(records.Transaction) {
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	_, _, err = db.Import(context.Background(), storetest.Numbered(storetest.ImportSize, io.EOF))
	if err = errors.Join(err, db.Close()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// TestImportIsAllOrNoneWhereverItIsKilled kills an import after each (quick tier: every second) transaction. The
// next process to open the file, even read-only, finds none or all of its records. Repeating the import gives each
// record once.
func TestImportIsAllOrNoneWhereverItIsKilled(t *testing.T) {
	outcomes := map[int]int{}
	for kill := 1; ; kill += storetest.QuickOr(2, 1) {
		path := filepath.Join(t.TempDir(), "r.db")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), importProcessEnv+"="+path, fmt.Sprintf("%s=%d", importKillEnv, kill))
		out, err := cmd.Output()
		if err == nil {
			break // all transactions were covered
		}
		if status, is := cmd.ProcessState.Sys().(syscall.WaitStatus); !is || status.Signal() != syscall.SIGKILL {
			t.Fatalf("the import ended by itself: %v, %s", err, out)
		}
		db, err := bolt.OpenReadOnly(path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := len(storetest.List(t, db, "", ""))
		if n != 0 && n != storetest.ImportSize {
			t.Errorf("killed after %d transactions: %d records", kill, n)
		}
		outcomes[n]++
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = openDB(t, path)
		imported, skipped, err := db.Import(t.Context(), storetest.Numbered(storetest.ImportSize, io.EOF))
		if err != nil || imported != uint64(storetest.ImportSize-n) || skipped != uint64(n) || len(storetest.List(t, db, "", "")) != storetest.ImportSize {
			t.Errorf("killed after %d transactions with %d records there: then imported %d, skipped %d, %v", kill, n, imported, skipped, err)
		}
	}
	if outcomes[0] == 0 || outcomes[storetest.ImportSize] == 0 {
		t.Errorf("none and all are to be met, each at some transaction: %v", outcomes)
	}
}

func TestImportThatFailsLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	db := openDB(t, path)
	storetest.Add(t, db, storetest.Record("cpu", "mine", 1, 0.5))
	broken := errors.New("the line broke")
	if _, _, err := db.Import(t.Context(), storetest.Numbered(700, broken)); !errors.Is(err, broken) {
		t.Errorf("the import failed with %v", err)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	next := storetest.Numbered(700, io.EOF)
	_, _, err := db.Import(cancelled, func() (*tilthv1.Record, error) {
		cancel(broken)
		return next()
	})
	if !errors.Is(err, broken) {
		t.Errorf("the import that was cancelled failed with %v", err)
	}
	if n := len(storetest.List(t, db, "", "")); n != 1 {
		t.Errorf("%d records are there, want the one from before", n)
	}
	if n, err := bucketSize(path, db); err != nil || n != 0 {
		t.Errorf("%d entries of the imports are left, %v", n, err)
	}
}

func TestImportOfManyRecordsLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.db")
	db := openDB(t, path)
	imported, skipped, err := db.Import(t.Context(), storetest.Numbered(6000, io.EOF))
	if err != nil || imported != storetest.ImportSize || skipped != 6000-storetest.ImportSize {
		t.Errorf("imported %d, skipped %d, %v", imported, skipped, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("the folder has %v, %v", names, err)
	}
	if n, err := bucketSize(path, db); err != nil || n != 0 {
		t.Errorf("%d entries of the imports are left, %v", n, err)
	}
}

// bucketSize closes the store and counts the entries of its file's bucket of imports.
func bucketSize(path string, db *bolt.DB) (n int, err error) {
	if err := db.Close(); err != nil {
		return 0, err
	}
	file, err := bbolt.Open(path, 0o644, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer file.Close()
	err = file.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("imports")).ForEach(func(_, _ []byte) error {
			n++
			return nil
		})
	})
	return n, err
}
