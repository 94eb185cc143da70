package bolt_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

// full creates a records file with much free space, and returns its content.
func full(t *testing.T, path string, n int) (content []proto.Message) {
	t.Helper()
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for second := range int64(n) {
		storetest.Add(t, db, storetest.Record("cpu", fmt.Sprintf("workload %d", second%7), second+1, 1/float64(second+1)))
	}
	if _, _, err := db.Prune(t.Context(), records.PruneOptions{KeepBest: n / 20}); err != nil {
		t.Fatal(err)
	}
	for _, r := range storetest.List(t, db, "", "") {
		content = append(content, r)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return content
}

// checkContent checks that the file has its content, and is writable.
func checkContent(t *testing.T, path string, want []proto.Message) {
	t.Helper()
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got := storetest.List(t, db, "", "")
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range got {
		if !proto.Equal(got[i], want[i]) {
			t.Errorf("record %d is %v, want %v", i, got[i], want[i])
		}
	}
	for _, r := range got {
		best, err := db.BestAllowed(r.GetTarget(), r.GetWorkloadDigest(), "")
		if err != nil || best.GetMeasurement().GetLatencySeconds() > r.GetMeasurement().GetLatencySeconds() {
			t.Errorf("best record %v, %v", best, err)
		}
	}
	storetest.Add(t, db, got[0]) // already stored
}

func TestCompactedFileHasAllThatItHadAndIsSmaller(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	content := full(t, path, 500)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	before, after, err := bolt.Compact(link)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() != after || after >= before || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes became %d, the file is %v, %v", before, after, info, err)
	}
	if target, err := os.Readlink(link); err != nil || target != path {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	checkContent(t, path, content)
}

func TestFileInUseIsNotCompacted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	content := full(t, path, 20)
	for name, open := range map[string]func(string, bolt.Options) (*bolt.DB, error){"writer": bolt.Open, "reader": bolt.OpenReadOnly} {
		db, err := open(path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = bolt.Compact(path)
		if want := fmt.Sprintf("compact records file %s: in use by another process: stop it first", path); !errors.Is(err, records.ErrLocked) || err.Error() != want {
			t.Errorf("beside a %s: %v, want %s", name, err, want)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := bolt.Compact(filepath.Join(t.TempDir(), "none.db")); !errors.Is(err, records.ErrMissing) {
		t.Errorf("a file that is not there: %v", err)
	}
	checkContent(t, path, content)
}

// TestProcessThatWaitedDuringACompactionOpensTheNewFile checks that a process waiting for a file's lock during its
// replacement does not write to the deleted file.
func TestProcessThatWaitedDuringACompactionOpensTheNewFile(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "r.db"), filepath.Join(dir, "other.db")
	full(t, path, 20)
	content := full(t, other, 40)
	holder, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan *bolt.DB)
	go func() {
		db, err := bolt.Open(path, bolt.Options{LockTimeout: time.Minute})
		if err != nil {
			t.Error(err)
		}
		opened <- db
	}()
	if err := errors.Join(os.Rename(other, path), holder.Close()); err != nil {
		t.Fatal(err)
	}
	db := <-opened
	if got := storetest.List(t, db, "", ""); len(got) != len(content) {
		t.Errorf("%d records, want the %d of the file that is there now", len(got), len(content))
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

const (
	compactProcessEnv = "TILTH_TEST_COMPACT"
	compactOnceEnv    = "TILTH_TEST_COMPACT_ONCE"
)

// compactProcess compacts a file in a child process, once or until it is killed.
func compactProcess(path string) {
	fmt.Println("begins")
	for {
		if _, _, err := bolt.Compact(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if os.Getenv(compactOnceEnv) != "" {
			return
		}
	}
}

func TestCompactionThatIsKilledLeavesTheFileWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	content := full(t, path, 300)
	rng := rand.New(rand.NewPCG(1, 1))
	for range storetest.QuickOr(8, 20) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), compactProcessEnv+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		// A random time within this compaction, which takes a few milliseconds, or the next.
		<-time.After(time.Duration(rng.IntN(20000)) * time.Microsecond)
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() == 1 {
			t.Fatalf("the compaction ended by itself: %v", err)
		}
		checkContent(t, path, content)
	}
	if _, _, err := bolt.Compact(path); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(path + "?*")
	if err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
