package record

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/expr/exprtest"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/lab/bench/replay"
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

func TestARecordingThatWasCutShortGoesOn(t *testing.T) {
	r := newRecorder(t)
	task := Task{Name: "matmul 16x32 -> 24", Model: "made-up", Workload: exprtest.Product(t, 16, 32, 24)}
	ctx, cancel := context.WithCancel(t.Context())
	first := 0
	r.Progress = func(p Progress) {
		if first = p.Measured; first < p.Candidates {
			cancel()
		}
	}
	if _, err := r.Record(ctx, task); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want the end of the context", err)
	}
	partial := filepath.Join(r.Dir, "matmul_16x32-24.partial.jsonl")
	addTo(t, partial, `{"origin":"tv=1 tw=`) // truncated, as by a killed process
	next := 0
	r.Progress = func(p Progress) {
		if next == 0 {
			next = p.Measured
		}
	}
	path, err := r.Record(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	if first == 0 || next <= first {
		t.Errorf("%d candidates were measured, then %d", first, next)
	}
	if _, err := os.Stat(partial); err == nil {
		t.Error("the journal is still there")
	}
	check(t, path)
}

func addTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// check verifies that a set has each schedule of its space exactly once, measured and correct.
func check(t *testing.T, path string) {
	t.Helper()
	set, err := replay.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := set.Space()
	if err != nil {
		t.Fatal(err)
	}
	candidates := replay.Candidates(s, 0)
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

func TestASetThatIsThereIsLeftAlone(t *testing.T) {
	r := newRecorder(t)
	r.Compiler = nil // any build would fail
	path := filepath.Join(r.Dir, "softmax"+replay.Suffix)
	if err := os.WriteFile(path, []byte("a set"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Record(t.Context(), Task{Name: "softmax"}); err != nil || got != path {
		t.Errorf("%s, %v; want %s", got, err, path)
	}
}

func TestABrokenJournalIsNamedWithTheRemedy(t *testing.T) {
	r := newRecorder(t)
	path := filepath.Join(r.Dir, "softmax.partial.jsonl")
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := r.Record(t.Context(), Task{Name: "softmax"})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "delete it to begin again") {
		t.Errorf("%v, want the file and the remedy", err)
	}
}
