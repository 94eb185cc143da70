package tracker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// TestBackupsAreMadeVerifiedAndKeptByCountAndAge runs a tracker for a day and a half, with a restart and an
// unwritable folder.
func TestBackupsAreMadeVerifiedAndKeptByCountAndAge(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		policy := tracker.Backups{Dir: filepath.Join(dir, "backups"), Every: 30 * time.Minute, Keep: 4, KeepFor: 100 * time.Minute}
		f := newTimedAs(t, tracker.Config{Backups: policy})
		defer func() { f.stop() }()
		names := func() []string {
			files, err := filepath.Glob(filepath.Join(policy.Dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			return files
		}
		synctest.Wait()
		first := names()
		if len(first) != 1 {
			t.Fatalf("backups are %v", first)
		}
		f.stop()
		f.start()
		synctest.Wait()
		if again := names(); !slices.Equal(again, first) {
			t.Errorf("after a restart: %v, want %v", again, first)
		}
		time.Sleep(65 * time.Minute)
		if all := names(); len(all) != 3 {
			t.Errorf("after 65 minutes: %v", all)
		}
		time.Sleep(2 * time.Hour)
		all := names()
		if len(all) != 4 || slices.Contains(all, first[0]) {
			t.Errorf("after 3 hours: %v", all)
		}
		for _, path := range all {
			if report, err := bolt.Verify(t.Context(), path); err != nil || report.Damaged > 0 {
				t.Errorf("%s: %+v, %v", path, report, err)
			}
		}
	})
}

// TestBackupThatFailsIsCountedAndTriedAgain checks that the failure is exported before the next attempt.
func TestBackupThatFailsIsCountedAndTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // not a folder
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		f := newTimedAs(t, tracker.Config{Registerer: registry, Backups: tracker.Backups{Dir: dir, Every: 6 * time.Hour}})
		defer func() { f.stop() }()
		time.Sleep(25 * time.Minute)
		if n := value(t, registry, "tilth_tracker_backup_failures_total"); n != 3 {
			t.Errorf("%v failures in 25 minutes", n)
		}
		if at := value(t, registry, "tilth_tracker_backup_last_success_timestamp_seconds"); at != 0 {
			t.Errorf("a backup counts: %v", at)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		age := float64(time.Now().Unix()) - value(t, registry, "tilth_tracker_backup_last_success_timestamp_seconds")
		if age < 0 || age > 600 || value(t, registry, "tilth_tracker_backup_size_bytes") == 0 {
			t.Errorf("the last good one is %v s old: %s", age, fmt.Sprint(os.ReadDir(dir)))
		}
	})
}
