package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/chaos/powercut"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

// recordSelf runs the test binary on a records file in dir and records its writes.
func recordSelf(t *testing.T, dir string, variables ...string) *powercut.Trace {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variables...)
	trace, err := powercut.Run(cmd, dir)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// TestImportIsAllOrNoneOverAPowerCut cuts the power after each step of an undisturbed import, and of an import
// after another one was killed.
func TestImportIsAllOrNoneOverAPowerCut(t *testing.T) {
	for name, kill := range map[string]int{"undisturbed": 0, "after its first transaction": 1, "after its fourth": 4} {
		if kill == 1 && testing.Short() {
			continue // slow: hundreds of additional steps
		}
		dir := t.TempDir()
		path := filepath.Join(dir, "data", "r.db")
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if kill > 0 {
			recordSelf(t, dir, importProcessEnv+"="+path, fmt.Sprintf("%s=%d", importKillEnv, kill))
		}
		trace := recordSelf(t, dir, importProcessEnv+"="+path)
		outcomes := map[int]int{}
		err := trace.Everywhere(1, 1, "data", func(left string, at int) error {
			if at < trace.Len() && at%storetest.QuickOr(3, 1) > 0 {
				return nil // the quick tier looks after every third step
			}
			db, err := bolt.OpenReadOnly(filepath.Join(left, "r.db"), bolt.Options{})
			if errors.Is(err, records.ErrMissing) && at < trace.Len() {
				return nil // not created yet
			}
			if err != nil {
				return err
			}
			defer db.Close()
			n := len(storetest.List(t, db, "", ""))
			outcomes[n]++
			if n != storetest.ImportSize && (n != 0 || at == trace.Len()) {
				return fmt.Errorf("%d records of %d are there", n, storetest.ImportSize)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if kill == 0 && (outcomes[0] == 0 || outcomes[storetest.ImportSize] == 0) {
			t.Errorf("none and all are to be met, each after some step: %v", outcomes)
		}
	}
}

// TestCompactionKeepsAllOverAPowerCut cuts the power after each step of a compaction.
func TestCompactionKeepsAllOverAPowerCut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data", "r.db")
	content := full(t, path, 300)
	trace := recordSelf(t, dir, compactProcessEnv+"="+path, compactOnceEnv+"=1")
	err := trace.Everywhere(1, 4, "data", func(left string, _ int) error {
		db, err := bolt.OpenReadOnly(filepath.Join(left, "r.db"), bolt.Options{})
		if err != nil {
			return err
		}
		defer db.Close()
		got := storetest.List(t, db, "", "")
		if len(got) != len(content) {
			return fmt.Errorf("%d records, want %d", len(got), len(content))
		}
		for i := range got {
			if !proto.Equal(got[i], content[i]) {
				return fmt.Errorf("record %d is %v, want %v", i, got[i], content[i])
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

const renameProcessEnv = "TILTH_TEST_RENAME"

// renameProcess runs in a child process. It renames a records file like a compaction that is killed before it syncs
// the folder, and then writes to the file like the next process.
func renameProcess(path string) {
	err := os.Rename(path+".compacting", path)
	db, err1 := bolt.Open(path, bolt.Options{})
	if err = errors.Join(err, err1); err == nil {
		w := &records.Write{}
		w.AddRecord(storetest.Record("cpu", "late", 1, 0.5))
		err = errors.Join(db.Commit(w).Wait(context.Background()), db.Close())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// TestUnsyncedWritesOfAKilledProcessAreSyncedOnOpen cuts the power after a process has opened the unsynced file
// of a killed one.
func TestUnsyncedWritesOfAKilledProcessAreSyncedOnOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data", "r.db")
	content := full(t, path, 20)
	b, err := os.ReadFile(path)
	if err := errors.Join(err, os.WriteFile(path+".compacting", b, 0o644)); err != nil {
		t.Fatal(err)
	}
	trace := recordSelf(t, dir, renameProcessEnv+"="+path)
	err = trace.Everywhere(1, 10, "data", func(left string, at int) error {
		db, err := bolt.OpenReadOnly(filepath.Join(left, "r.db"), bolt.Options{})
		if err != nil {
			return err
		}
		defer db.Close()
		if n := len(storetest.List(t, db, "", "")); n != len(content)+1 && (n != len(content) || at == trace.Len()) {
			return fmt.Errorf("%d records after step %d, want %d and one more in the end", n, at, len(content))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// tornProcessEnv makes this binary emulate a process that is killed between the write of a meta page and its sync,
// and then the next process, which adds a record.
const (
	tornProcessEnv = "TILTH_TEST_TORN"
	nextSuffix     = ".next" // the file after the transaction
	testPageBytes  = 16 << 10
)

func tornProcess(path string) {
	if err := errors.Join(tear(path), addOne(path)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// tear changes a file to its next version in the order of a transaction, without the last sync.
func tear(path string) error {
	next, err := os.ReadFile(path + nextSuffix)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(next[2*testPageBytes:], 2*testPageBytes)
	if err := errors.Join(err, f.Sync()); err != nil {
		return err
	}
	_, err = f.WriteAt(next[:2*testPageBytes], 0)
	return err
}

func addOne(path string) error {
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	w := &records.Write{}
	w.AddRecord(storetest.Record("cpu", "another", 1, 1))
	return errors.Join(db.Commit(w).Wait(context.Background()), db.Close())
}

// TestMetaPageOfAKilledProcessIsSyncedBeforeTheNextTransaction checks the sync of a killed process's meta
// page before the next transaction. Until then, a power failure may revert to the transaction before, whose pages the
// next one overwrites.
func TestMetaPageOfAKilledProcessIsSyncedBeforeTheNextTransaction(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data", "r.db")
	content := full(t, path, 20)
	if _, _, err := bolt.Compact(path); err != nil { // then only the pages freed by the transaction are free
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err := errors.Join(err, os.WriteFile(path+nextSuffix, b, 0o644)); err != nil {
		t.Fatal(err)
	}
	rewrite(t, path+nextSuffix)
	trace := recordSelf(t, dir, tornProcessEnv+"="+path)
	err = trace.Everywhere(1, 20, "data", func(left string, at int) error {
		db, err := bolt.OpenReadOnly(filepath.Join(left, "r.db"), bolt.Options{})
		if err != nil {
			return err
		}
		defer db.Close()
		if n := len(storetest.List(t, db, "", "")); n != len(content) && n != len(content)+1 {
			return fmt.Errorf("%d records after step %d, want %d or one more", n, at, len(content))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// rewrite rewrites all rows of a file in one transaction, which frees all of its pages.
func rewrite(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o644, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, rows *bbolt.Bucket) error {
			return rows.ForEach(func(key, value []byte) error { return rows.Put(bytes.Clone(key), bytes.Clone(value)) })
		})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
