package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tuner/recordsource"
)

// TestExportIsNotWrittenWhileRecordsAreAddedToIt is a regression test: a concurrent sync lost its records or the
// export's.
func TestExportIsNotWrittenWhileRecordsAreAddedToIt(t *testing.T) {
	dir := t.TempDir()
	db, err := bolt.Open(filepath.Join(dir, "mine.db"), bolt.Options{})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "all.jsonl")
	export := func() (status int, said string) {
		var stderr bytes.Buffer
		status = run([]string{"records", "export", "--records", filepath.Join(dir, "mine.db"), "-o", path}, nil, &bytes.Buffer{}, &stderr)
		return status, stderr.String()
	}
	lock, err := recordsource.LockLines(path)
	if err != nil {
		t.Fatal(err)
	}
	if status, said := export(); status != 1 || !strings.Contains(said, path+": locked by another process, which writes it: try again") {
		t.Errorf("meanwhile it ends with %d: %s", status, said)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it was written meanwhile")
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if status, said := export(); status != 0 {
		t.Errorf("afterwards it ends with %d: %s", status, said)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("there are %v, %v", left, err)
	}
}
