package replay

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/runner"
)

// newRecorder returns a recorder for this machine.
func newRecorder(t *testing.T) *Recorder {
	t.Helper()
	tc, err := toolchain.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	native, err := target.Parse("native", 1)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := builder.OpenCache(filepath.Join(t.TempDir(), "objects"), 0)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := hostlock.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Recorder{
		Compiler: &builder.Compiler{Toolchain: tc, Cache: cache, Parallel: 2, CandidateTime: time.Minute},
		Target:   native.WithToolchain(tc.Name), Numerics: schedule.Strict, Limits: runner.Limits{Candidate: time.Minute},
		Lock: lock, Dir: t.TempDir(), Scratch: t.TempDir(),
		Size: PartOptions{Fewest: 12, Most: 20}, Batch: 6, Pilot: 6, Finalists: 3, Rounds: 2, Progress: func(Progress) {},
	}
}

func TestRecordingHasAllSchedulesOfItsPart(t *testing.T) {
	r := newRecorder(t)
	path, err := r.Record(t.Context(), Task{Name: "matmul 16x32 -> 24", Model: "made-up", Workload: kerneltest.Product(t, 16, 32, 24)})
	if err != nil {
		t.Fatal(err)
	}
	check(t, path)
}

// check verifies that a set has each schedule of its space exactly once, measured and correct.
func check(t *testing.T, path string) {
	t.Helper()
	set, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := set.Space()
	if err != nil {
		t.Fatal(err)
	}
	candidates := Candidates(s, 0)
	if len(candidates) != len(set.Points) || len(candidates) < 12 {
		t.Errorf("%d points for %d schedules", len(set.Points), len(candidates))
	}
	origins := map[string]bool{}
	for _, p := range set.Points {
		if origins[p.Origin] || p.Error != "" || p.LatencySeconds() <= 0 {
			t.Errorf("%+v, before %v", p, origins[p.Origin])
		}
		origins[p.Origin] = true
	}
	for _, c := range candidates {
		if !origins[c.Origin] {
			t.Errorf("%s is missing", c.Origin)
		}
	}
}

func TestSetThatIsThereIsLeftAlone(t *testing.T) {
	r := newRecorder(t)
	r.Compiler = nil // any build would fail
	path := filepath.Join(r.Dir, "softmax"+Suffix)
	if err := os.WriteFile(path, []byte("a set"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Record(t.Context(), Task{Name: "softmax"}); err != nil || got != path {
		t.Errorf("%s, %v; want %s", got, err, path)
	}
}
