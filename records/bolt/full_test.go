package bolt_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

const (
	fillProcessEnv = "TILTH_TEST_FILL"
	fillLimitEnv   = "TILTH_TEST_FILL_BYTES"
	fillBatch      = 20
	fillDiskBytes  = 1 << 20
	fillSuccessors = 5
	fillMaxBatches = 10000
)

// fillProcess writes records in a child process until the store fails. It prints each acknowledged write, and finally
// the errors of the writes after the first failure.
func fillProcess(path string) {
	if limit, err := strconv.ParseUint(os.Getenv(fillLimitEnv), 10, 64); err == nil {
		// Writes beyond the limit fail with EFBIG; Go ignores the accompanying signal.
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			fmt.Println("setrlimit:", err)
			return
		}
	}
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		fmt.Println("open:", err)
		return
	}
	failed := 0
	for batch := range fillMaxBatches {
		w := &records.Write{}
		for i := range fillBatch {
			w.AddRecord(storetest.Record("cpu", "conv", int64(1+batch*fillBatch+i), 0.5))
		}
		if err := db.Commit(w).Wait(context.Background()); err != nil {
			fmt.Println("failed:", err)
			if failed++; failed > fillSuccessors {
				break
			}
			continue
		}
		fmt.Println("acknowledged", batch)
	}
	fmt.Println("closed:", db.Close())
}

// TestFullDiskLosesNothingThatWasAcknowledged fills a real file system, or reaches a real file size limit. The
// failing write and all later ones are refused; acknowledged writes are present when the file is reopened.
func TestFullDiskLosesNothingThatWasAcknowledged(t *testing.T) {
	for name, c := range map[string]struct {
		place func(t *testing.T) (dir, limit string)
		cause string
	}{
		"file system": {func(t *testing.T) (string, string) { return storetest.SmallDisk(t, fillDiskBytes), "" }, "no space left on device"},
		"file size": {func(t *testing.T) (string, string) {
			return t.TempDir(), strconv.Itoa(fillDiskBytes)
		}, "file too large"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, limit := c.place(t)
			path := filepath.Join(dir, "r.db")
			acknowledged, failures := fill(t, path, limit)
			if acknowledged == 0 || len(failures) != fillSuccessors+1 {
				t.Fatalf("%d writes were acknowledged, then %q", acknowledged, failures)
			}
			for _, f := range failures {
				if f != failures[0] || !strings.Contains(f, "write records file "+path) || !strings.Contains(f, c.cause) {
					t.Errorf("a write failed with %q", f)
				}
			}
			db, err := bolt.OpenReadOnly(path, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			// The failed write may be missing or present, but not partial: bbolt syncs all of it before it counts.
			if n := len(storetest.List(t, db, "", "")); n < acknowledged*fillBatch || n%fillBatch != 0 {
				t.Errorf("%d records are there, %d were acknowledged", n, acknowledged*fillBatch)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// fill runs fillProcess and returns its output.
func fill(t *testing.T, path, limit string) (acknowledged int, failures []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fillProcessEnv+"="+path, fillLimitEnv+"="+limit)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if _, is := strings.CutPrefix(lines.Text(), "acknowledged "); is {
			acknowledged++
		} else if failure, is := strings.CutPrefix(lines.Text(), "failed: "); is {
			failures = append(failures, failure)
		} else if lines.Text() != "closed: <nil>" {
			t.Errorf("the process says %q", lines.Text())
		}
	}
	return acknowledged, failures
}
