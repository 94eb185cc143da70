package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestCheckerAcceptsOnlyExplainedLosses restores a farm's records from a backup during its work. The checker must
// accept exactly the loss of the work since the backup.
func TestCheckerAcceptsOnlyExplainedLosses(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: builds the farm's program and runs it to its end")
	}
	t.Parallel() // mostly waits
	dir := t.TempDir()
	lost := &loss{backupAt: 500 * time.Millisecond, after: time.Second}
	result, err := Round{Seed: 1, Dir: dir, Binary: buildProgram(t), calm: true, lost: lost}.Run(t.Context())
	if err != nil || len(result.Violations) > 0 {
		t.Fatalf("%v, %v", err, result)
	}
	data, journals := keptData(dir), filepath.Join(dir, journalsName)
	kept, err := readGap(journals)
	if err != nil || kept == nil {
		t.Fatalf("the gap: %v, %v", kept, err)
	}
	stored := storedArtifacts(filepath.Join(data, artifactsName))
	for _, c := range []struct {
		what   string
		change func() error
		want   string // empty = no violation
	}{
		{"nothing is said to be lost", func() error { return os.Remove(filepath.Join(journals, gapName)) }, "was acknowledged"},
		{"the loss is said to have ended later", func() error {
			return (&gap{From: kept.From, To: amidALease(t, journals, kept)}).write(journals)
		}, "of the life that was lost was accepted"},
		{"all is as it was", func() error { return kept.write(journals) }, ""},
		{"a bit of an artifact flips", func() error { return flipBit(stored[0], 12345) }, "has other bytes"},
		{"that is known", func() error { return appendLine(filepath.Join(journals, rottedName), filepath.Base(stored[0])) }, ""},
	} {
		if err := c.change(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		v, err := check(farmData{data: data}, journals, map[string][]*tilthv1.JobEvent{})
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if found := strings.Join(v.Violations, "\n"); !strings.Contains(found, c.want) || c.want == "" && found != "" {
			t.Errorf("%s: found %v, want %q", c.what, first(v.Violations, 5), c.want)
		}
	}
}

// amidALease returns a time after the gap, between a lease and its first accepted report.
func amidALease(t *testing.T, journals string, after *gap) int64 {
	t.Helper()
	calls, err := readCalls(journals)
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{calls: calls, leases: leases(calls), measured: map[string]map[string]bool{}}
	for _, call := range calls {
		if a, is := c.reported(call); is && call.accepted() && c.leases[tokenKey(a.token)].begin > after.To {
			return c.leases[tokenKey(a.token)].begin + 1
		}
	}
	t.Fatal("no report was accepted after the gap under a lease from after it")
	return 0
}

// keptData returns the data folder of the tracker in a finished round.
func keptData(dir string) string {
	if kept := filepath.Join(dir, keptName); isFolder(kept) {
		return kept
	}
	return filepath.Join(dir, dataName) // no dedicated disk was mounted
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
