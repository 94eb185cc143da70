package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner"
)

const (
	none         = tilthv1.ErrorClass_ERROR_CLASS_NONE
	badSchedule  = tilthv1.ErrorClass_ERROR_CLASS_BAD_SCHEDULE
	compileError = tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR
	compileLimit = tilthv1.ErrorClass_ERROR_CLASS_COMPILE_LIMIT
)

// product returns a matrix product followed by a ReLU.
func product(t testing.TB) *expr.Workload {
	t.Helper()
	const m, n, k = 32, 48, 64
	a, b := expr.NewInput("a", array.Float32, m, k), expr.NewConstant("b", array.Float32, k, n)
	sum := expr.ReduceOver("sum", expr.Sum, []int64{m, n}, []int64{k}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(a.At(i[0], r[0]), b.At(r[0], i[1]))
	})
	out := expr.Compute("out", sum.Shape, func(i []expr.Expr) expr.Expr {
		return expr.MaxE(sum.At(i...), expr.Zero(array.Float32))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{out})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// tiled returns schedules of product that split its rows by different factors.
func tiled(t testing.TB, w *expr.Workload, factors ...int64) []Candidate {
	t.Helper()
	var list []Candidate
	for _, f := range factors {
		s := schedule.New(w)
		outer, inner, err := s.Split(1, 0, f, schedule.Peel)
		if err == nil {
			err = s.ComputeAt(0, 1, outer)
		}
		if err == nil {
			err = s.Parallel(1, outer)
		}
		if err != nil {
			t.Fatal(inner, err)
		}
		list = append(list, Candidate{schedule.Digest(s.Trace()), s.Trace()})
	}
	return list
}

func native(t testing.TB) *target.Target {
	t.Helper()
	machine, err := target.Native(min(2, target.Processors()))
	if err != nil {
		t.Fatal(err)
	}
	return machine
}

// newCompiler returns a compiler with the harness and references cached by earlier tests.
func newCompiler(t testing.TB, override string) *Compiler {
	t.Helper()
	tc, err := toolchain.Find(t.Context(), override)
	if err != nil {
		t.Fatal(err)
	}
	return &Compiler{Toolchain: tc, Cache: openCache(t, toolchaintest.Cache(t, "builds"), 0), Parallel: 2}
}

func openCache(t testing.TB, dir string, capBytes int64) *Cache {
	t.Helper()
	cache, err := OpenCache(dir, capBytes)
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

// sabotaged returns a compiler that runs a shell command instead if the source contains a word.
func sabotaged(t testing.TB, words map[string]string) string {
	t.Helper()
	tc, err := toolchain.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for word, command := range words {
		fmt.Fprintf(&tests, "grep -q %s \"$a\" && { %s; }\n", word, command)
	}
	script := filepath.Join(t.TempDir(), "cc")
	text := "#!/bin/sh\nfor a; do case $a in kernels.c)\n" + tests.String() + ";; esac; done\nexec " + tc.Path() + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return script
}

// measure verifies every object of a built batch and returns the verdicts by candidate.
func measure(t testing.TB, b *Built) map[string]runner.Outcome {
	t.Helper()
	verdicts := map[string]runner.Outcome{}
	for _, object := range b.Objects {
		plan := runner.Plan{Harness: b.Harness, Reference: b.Reference, Candidates: []string{object}, Threads: 2}
		if err := runner.Measure(t.Context(), plan, func(o runner.Outcome) { verdicts[o.Kernel] = o }); err != nil {
			t.Fatal(err)
		}
	}
	return verdicts
}

func TestBuiltCandidatesRun(t *testing.T) {
	c, w := newCompiler(t, ""), product(t)
	batch := Batch{Workload: w, Target: native(t), Candidates: tiled(t, w, 1, 2, 4, 5, 8)}
	built, err := c.Build(t.Context(), t.TempDir(), batch)
	if err != nil {
		t.Fatal(err)
	}
	if len(built.Objects) != 2 {
		t.Errorf("%d objects by two compilers", len(built.Objects))
	}
	verdicts := measure(t, built)
	for k, o := range built.Outcomes {
		v := verdicts[batch.Candidates[k].Digest]
		if o.Error != none || o.Build <= 0 || v.Error != none || len(v.Samples) == 0 {
			t.Errorf("candidate %d: built %v, measured %v", k, o, v)
		}
	}
}

func TestBadCandidatesCostOnlyThemselves(t *testing.T) {
	w := product(t)
	list := tiled(t, w, 1, 2, 4, 5, 8, 16)
	digest := func(trace string) Candidate { return Candidate{schedule.Digest([]byte(trace)), []byte(trace)} }
	list = append(list, digest("tilth-trace 1\nfold 1 2\n"), digest("hello"), Candidate{list[0].Digest, []byte("tilth-trace 1\n")})
	c := newCompiler(t, sabotaged(t, map[string]string{
		list[1].Digest: "echo 'kernels.c:1:2: error: bad register' >&2; exit 1",
		list[2].Digest: "echo 'LLVM ERROR: out of memory' >&2; exit 1",
		list[4].Digest: "while :; do :; done",
	}))
	c.CandidateTime = time.Second
	built, err := c.Build(t.Context(), t.TempDir(), Batch{Workload: w, Target: native(t), Candidates: list})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		class   tilthv1.ErrorClass
		message string
	}{
		{none, ""}, {compileError, "bad register"}, {compileLimit, "out of memory"}, {none, ""}, {compileLimit, "took "}, {none, ""},
		{badSchedule, `line 2: "fold" is not a primitive`}, {badSchedule, "line 1"}, {badSchedule, "the trace has digest"},
	}
	verdicts := measure(t, built)
	for k, o := range built.Outcomes {
		if o.Error != want[k].class || !strings.Contains(o.Message, want[k].message) || strings.Contains(o.Message, "\n") {
			t.Errorf("candidate %d: %v %q, want %v %q", k, o.Error, o.Message, want[k].class, want[k].message)
		}
		if v, measured := verdicts[o.Candidate]; k < 6 && measured != (o.Error == none) || v.Error > none {
			t.Errorf("candidate %d: measured %v", k, v)
		}
	}
}

func TestBuildSideFaultsAreErrors(t *testing.T) {
	w := product(t)
	batch := Batch{Workload: w, Target: native(t), Candidates: tiled(t, w, 1, 2)}
	full := newCompiler(t, sabotaged(t, map[string]string{"tilth_module": "echo 'fatal error: x.o: No space left on device' >&2; exit 1"}))
	if _, err := full.Build(t.Context(), t.TempDir(), batch); err == nil || !strings.Contains(err.Error(), "No space left") {
		t.Errorf("full disk: %v", err)
	}
	script := sabotaged(t, nil)
	gone := newCompiler(t, script)
	if err := os.Remove(script); err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Build(t.Context(), t.TempDir(), batch); err == nil || !strings.Contains(err.Error(), "cannot run") {
		t.Errorf("compiler gone: %v", err)
	}
	lost := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	if _, err := newCompiler(t, "").Build(ctx, t.TempDir(), batch); !errors.Is(err, lost) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestCacheBuildsOnceAndEvicts(t *testing.T) {
	c := newCompiler(t, "")
	c.Cache = openCache(t, t.TempDir(), 0)
	build := func(n int) toolchain.Build {
		text := fmt.Sprintf("int f(void) { return %d; }", n)
		return toolchain.Build{Target: native(t), Form: toolchain.Kernels, Sources: []toolchain.File{{Name: "f.c", Text: text}}}
	}
	first, err := c.Cache.Get(t.Context(), c.Toolchain, build(1))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	c.Cache = openCache(t, filepath.Dir(first), 2*info.Size())
	broken := &toolchain.Toolchain{Name: c.Toolchain.Name} // cannot build: a cache hit does not need to
	if path, err := c.Cache.Get(t.Context(), broken, build(1)); err != nil || path != first {
		t.Errorf("hit: %s, %v", path, err)
	}
	for n := range 3 {
		if _, err := c.Cache.Get(t.Context(), c.Toolchain, build(n+2)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(first); err == nil {
		t.Error("the least recently used object was kept over the cap")
	}
}

// BenchmarkBatch builds 16 candidates with two parallel compilers, which is the builder's cost of a batch.
func BenchmarkBatch(b *testing.B) {
	c, w := newCompiler(b, ""), product(b)
	batch := Batch{Workload: w, Target: native(b), Candidates: tiled(b, w, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)}
	if _, err := c.Build(b.Context(), b.TempDir(), batch); err != nil { // builds the harness and the reference
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := c.Build(b.Context(), b.TempDir(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N*len(batch.Candidates))*1e3, "ms/trial")
}

func TestPanicOverTheReferenceIsAnError(t *testing.T) {
	err := (&job{}).reference(t.Context()) // no workload: the printer panics
	if err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Errorf("got %v", err)
	}
}

// TestCandidatesAreGroupedByConstantLayout checks that candidates with the same layout of constants are adjacent,
// starting with the first one's.
func TestCandidatesAreGroupedByConstantLayout(t *testing.T) {
	w := product(t)
	var list []Candidate
	for _, width := range []int64{8, 0, 16, 8, 0, 16} {
		s := schedule.New(w)
		if width > 0 {
			if err := s.Pack(0, []schedule.PackDim{{Dim: 1, Factor: width}, {Dim: 0}, {Dim: 1, Factor: width, Inner: true}}); err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, Candidate{schedule.Digest(s.Trace()), s.Trace()})
	}
	j := &job{compiler: newCompiler(t, ""), batch: Batch{Workload: w, Candidates: list}}
	j.built.Outcomes = make([]Outcome, len(list))
	var order []int
	for _, kernel := range j.replay() {
		order = append(order, kernel.index)
	}
	if want := []int{0, 3, 1, 4, 2, 5}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}
