package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

// submitted stores a job and some of its records.
func submitted(t *testing.T, db *bolt.DB, id string, recorded int) {
	t.Helper()
	w := &records.Write{}
	w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{Id: id}})
	for n := range recorded {
		w.AddRecord(storetest.Record("cpu", "workload of "+id, int64(n)+1, 0.5))
	}
	if err := db.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreReportsWhatIsLost restores over intact, damaged, missing and open files.
func TestRestoreReportsWhatIsLost(t *testing.T) {
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "data", "r.db"), filepath.Join(dir, "backup.db")
	now := time.Unix(1700000000, 0)
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	submitted(t, db, "job-00000001-aaaaaa", 3)
	if report, err := db.BackupTo(t.Context(), backup, now); err != nil || report.Rows == 0 {
		t.Fatalf("backup: %+v, %v", report, err)
	}
	submitted(t, db, "job-00000001-aaaaaa", 5)
	submitted(t, db, "job-00000002-aaaaaa", 4)
	if _, err := bolt.Restore(t.Context(), backup, path, now); !errors.Is(err, records.ErrLocked) || !strings.Contains(err.Error(), "stop the tracker first") {
		t.Errorf("under a writer: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Restore(t.Context(), path, path, now); err == nil || !strings.Contains(err.Error(), "same file") {
		t.Errorf("a file as itself: %v", err)
	}
	r, err := bolt.Restore(t.Context(), backup, path, now)
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost == nil || !slices.Equal(r.Lost.Jobs, []string{"job-00000002-aaaaaa"}) || r.Lost.JobCount != 1 || r.Lost.Records != 6 || r.Lost.Workloads != 2 {
		t.Errorf("lost are %+v", r.Lost)
	}
	aside, err := bolt.OpenReadOnly(r.Aside, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(storetest.List(t, aside, "", "")); n != 9 {
		t.Errorf("the file aside has %d records", n)
	}
	if err := aside.Close(); err != nil {
		t.Fatal(err)
	}

	// The existing file is unreadable.
	if err := os.WriteFile(path, []byte(strings.Repeat("rubbish", 9999)), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err = bolt.Restore(t.Context(), backup, path, now.Add(time.Second))
	if err != nil || r.Lost != nil || !errors.Is(r.Unreadable, records.ErrDamaged) {
		t.Errorf("over rubbish: %+v, %v", r, err)
	}
	// Without an existing file.
	other := filepath.Join(dir, "new", "r.db")
	if r, err := bolt.Restore(t.Context(), backup, other, now); err != nil || r.Aside != "" || r.Lost != nil || r.Unreadable != nil {
		t.Errorf("where there was none: %+v, %v", r, err)
	}
	for _, path := range []string{path, other} {
		db, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(storetest.List(t, db, "", "")); n != 3 || db.Restored().IsZero() {
			t.Errorf("%s has %d records, restored %v", path, n, db.Restored())
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFileThatNobodyMarkedIsRestoredAsACopy covers a file that was replaced and is restored again.
func TestFileThatNobodyMarkedIsRestoredAsACopy(t *testing.T) {
	dir := t.TempDir()
	unmarked, path := filepath.Join(dir, "unmarked.db"), filepath.Join(dir, "r.db")
	full(t, unmarked, 1)
	if _, err := bolt.Restore(t.Context(), unmarked, path, time.Now()); err != nil {
		t.Fatal(err)
	}
	db := openDB(t, path)
	if db.Restored().IsZero() {
		t.Error("it goes on as if nothing was lost")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedBackupIsNotRestored checks that nothing changes.
func TestDamagedBackupIsNotRestored(t *testing.T) {
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "r.db"), filepath.Join(dir, "backup.db")
	full(t, path, 100)
	content := full(t, backup, 100)
	whole, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.ReplaceAll(whole, []byte("trace 99"), []byte("trace 98")) // also in pages that are free
	for name, damaged := range map[string][]byte{"a byte": changed, "cut short": whole[:len(whole)/2], "empty": nil} {
		if err := os.WriteFile(backup, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := bolt.Restore(t.Context(), backup, path, time.Now()); !errors.Is(err, records.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Errorf("the file changed: %v", err)
	}
	if names, err := filepath.Glob(path + "?*"); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
	checkContent(t, path, content)
}

// TestBackupThatIsDamagedDoesNotCount checks that a backup is verified, because damage would otherwise be found when
// it is needed.
func TestBackupThatIsDamagedDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, filepath.Join(dir, "r.db"))
	submitted(t, db, "job-00000001-aaaaaa", 3)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(db.Path())
	if err != nil {
		t.Fatal(err)
	}
	b[strings.LastIndex(string(b), "board-1")] ^= 1
	if err := os.WriteFile(db.Path(), b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err = bolt.OpenExisting(db.Path(), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.BackupTo(t.Context(), filepath.Join(dir, "backup.db"), time.Now())
	if !errors.Is(err, records.ErrDamaged) || strings.Contains(fmt.Sprint(err), "\n") {
		t.Errorf("backup: %v", err)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "backup*")); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
