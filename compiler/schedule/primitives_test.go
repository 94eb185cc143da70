package schedule

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// The stages of the workload that the tests schedule: a padded copy, a matrix product, and two outputs that use it.
const (
	pad = iota
	product
	relu
	total
)

func testWorkload(t testing.TB) *expr.Workload {
	d := array.Float32
	x, w := expr.NewInput("x", d, 6, 8), expr.NewConstant("w", d, 10, 12)
	p := expr.Compute("pad", []int64{6, 10}, func(i []expr.Expr) expr.Expr {
		return expr.Sel(expr.Bin(expr.Lt, i[1], expr.I(8)), x.At(i[0], i[1]), expr.Zero(d))
	})
	mm := expr.ReduceOver("product", expr.Sum, []int64{6, 12}, []int64{10}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(p.At(i[0], r[0]), w.At(r[0], i[1]))
	})
	a := expr.Compute("relu", mm.Shape, func(i []expr.Expr) expr.Expr { return expr.MaxE(mm.At(i...), expr.Zero(d)) })
	sum := expr.ReduceOver("total", expr.Sum, []int64{6}, []int64{12}, func(i, r []expr.Expr) expr.Expr { return mm.At(i[0], r[0]) })
	workload, err := expr.NewWorkload([]*expr.Tensor{a, sum})
	if err != nil {
		t.Fatal(err)
	}
	return workload
}

// TestIllegalPrimitives has a trace for each error of a primitive; its last line is the illegal one.
func TestIllegalPrimitives(t *testing.T) {
	cases := map[string]struct{ trace, want string }{
		"no such stage":                          {"split 9 0 2 0", "split: there is no stage 9"},
		"no such iterator":                       {"unroll 0 7", "unroll: stage 0 has no iterator 7"},
		"split by zero":                          {"split 1 0 0 0", "split: factor 0 of stage 1 is not positive"},
		"split twice":                            {"split 1 0 2 0\nsplit 1 0 3 0", "split: iterator 0 of stage 1 was already split or fused"},
		"split of an annotated iterator":         {"unroll 1 0\nsplit 1 0 2 0", "split: iterator 0 of stage 1 is already annotated"},
		"shifted tiles of a reduction":           {"split 1 0 4 1", "split: stage 1 is a reduction, whose tiles cannot be shifted"},
		"no such tail":                           {"split 1 0 4 4", "split: 4 is not a tail"},
		"fitted tiles of a fixed axis":           {"split 1 0 4 3", "split: iterator 0 of stage 1 is no axis of its results with a limit"},
		"fuse across another iterator":           {"fuse 1 0 2", "fuse: iterator 2 of stage 1 is not directly inside 0"},
		"fuse outwards":                          {"fuse 1 1 0", "fuse: iterator 0 of stage 1 is not directly inside 1"},
		"fuse with itself":                       {"fuse 1 1 1", "fuse: iterator 1 of stage 1 is not directly inside 1"},
		"fuse of space and reduction":            {"fuse 1 1 2", "fuse: iterators 1 and 2 of stage 1 mix space and reduction"},
		"fuse of an annotated iterator":          {"parallel 1 0\nfuse 1 0 1", "fuse: iterators 0 and 1 of stage 1 are already annotated"},
		"fuse around a computed stage":           {"compute-at 0 1 0\nfuse 1 0 1", "fuse: a stage is computed at iterator 0 or 1 of stage 1"},
		"reorder that names one twice":           {"reorder 1 0 0", "reorder: iterator 0 of stage 1 is named twice"},
		"reorder of what was split":              {"split 1 0 2 0\nreorder 1 1 0", "reorder: iterator 0 of stage 1 was already split or fused"},
		"compute an output inside another stage": {"compute-at 2 3 0", "compute-at: stage 2 is an output"},
		"compute a stage inside itself":          {"compute-at 1 1 0", "compute-at: stage 1 cannot be computed inside itself"},
		"compute at vector lanes":                {"vectorize 1 1\ncompute-at 0 1 1", "compute-at: iterator 1 of stage 1 is vectorized"},
		"compute inside one of two users":        {"compute-at 1 2 0", "compute-at: stage 1 is also used by stage 3, outside iterator 0 of stage 2"},
		"compute a parallel stage inside":        {"parallel 0 0\ncompute-at 0 1 0", "compute-at: stage 0 has a parallel iterator"},
		"inline an output":                       {"inline 2", "inline: stage 2 is an output"},
		"inline a reduction":                     {"inline 1", "inline: stage 1 is a reduction"},
		"use of an inlined stage":                {"inline 0\nunroll 0 0", "unroll: stage 0 is inlined"},
		"inline around a computed stage":         {"cache-write 0\ncompute-at 4 0 0\ninline 0", "inline: another stage is computed inside stage 0"},
		"cache-write after a split":              {"split 1 0 2 0\ncache-write 1", "cache-write: stage 1 was already scheduled"},
		"cache-read of a tensor that is not":     {"cache-read 1 2 0 1", "cache-read: stage 1 loads no tensor 2"},
		"cache-read in no order":                 {"cache-read 1 0 0 0", "cache-read: [0 0] does not order the 2 dimensions"},
		"cache-read of half a tensor":            {"cache-read 1 0 0", "cache-read: [0] does not order the 2 dimensions"},
		"cache-read for an inlined stage":        {"inline 0\ncache-read 0 0 0 1", "cache-read: stage 0 is inlined"},
		"parallel reduction":                     {"parallel 1 2", "parallel: iterator 2 of stage 1 is a reduction"},
		"rfactor of a map":                       {"rfactor 0 0 2 0", "rfactor: stage 0 has no reduction axis 0"},
		"rfactor of no such axis":                {"rfactor 1 1 2 0", "rfactor: stage 1 has no reduction axis 1"},
		"rfactor by zero":                        {"rfactor 1 0 0 0", "rfactor: factor 0 of stage 1 is not between 1 and the extent 10"},
		"rfactor beyond the extent":              {"rfactor 1 0 11 0", "rfactor: factor 11 of stage 1 is not between 1 and the extent 10"},
		"rfactor into no such part":              {"rfactor 1 0 2 3", "rfactor: 3 is not a part"},
		"rfactor of a scheduled stage":           {"unroll 1 2\nrfactor 1 0 2 0", "rfactor: stage 1 was already scheduled"},
		"two annotations":                        {"unroll 1 2\nunroll 1 2", "unroll: iterator 2 of stage 1 is already annotated"},
		"two parallel iterators":                 {"parallel 1 0\nparallel 1 1", "parallel: stage 1 already has a parallel iterator"},
		"parallel inside another stage":          {"compute-at 0 1 0\nparallel 0 0", "parallel: stage 0 is computed inside another"},
		"vectorize around a computed stage":      {"compute-at 0 1 1\nvectorize 1 1", "vectorize: a stage is computed at iterator 1 of stage 1"},
		"pack of no constant":                    {"pack 1 0 0 0 1 0 0", "pack: there is no constant 1"},
		"pack twice":                             {"pack 0 1 0 0 0 0 0\npack 0 0 0 0 1 0 0", "pack: constant 0 is already packed"},
		"pack without a dimension":               {"pack 0 0 0 0", "does not hold dimension 1"},
		"pack with two factors":                  {"pack 0 0 2 0 0 3 1 1 0 0", "does not hold dimension 0"},
		"pack of a dimension that is not":        {"pack 0 0 0 0 1 0 0 2 0 0", "pack: constant 0 has no dimension 2"},
		"numbers that make no layout":            {"pack 0 0 0", "pack does not take 3 numbers"},
		"an unknown primitive":                   {"levitate 0 0", `"levitate" is not a primitive`},
		"too few numbers":                        {"split 0 0", "split does not take 2 numbers"},
		"a negative number":                      {"split 0 -1 2 0", `"-1" is not a number`},
		"a number that is too large":             {"split 0 0 4294967296 0", `"4294967296" is not a number`},
		"an empty line":                          {"unroll 0 0\n\nunroll 0 1", "empty line"},
	}
	w := testWorkload(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Replay(w, []byte(traceHeader+"\n"+c.trace+"\n"))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestRefusedPrimitivesChangeNothing: searches try primitives and continue with the legal ones.
func TestRefusedPrimitivesChangeNothing(t *testing.T) {
	s := New(testWorkload(t))
	if _, _, err := s.Split(product, 0, 4, Peel); err != nil {
		t.Fatal(err)
	}
	before, leaves := string(s.Trace()), len(s.Stages[product].Leaves)
	_, _, _ = s.Split(product, 0, 4, Peel)
	_, _ = s.Fuse(product, 3, 2)
	_ = s.Reorder(product, 3, 3)
	_ = s.ComputeAt(product, relu, 0)
	_ = s.Inline(product)
	_ = s.Parallel(product, 2)
	if string(s.Trace()) != before || len(s.Stages[product].Leaves) != leaves {
		t.Errorf("the schedule changed:\n%s", s.Trace())
	}
}

// fullTrace uses every primitive.
const fullTrace = `tilth-trace 1
pack 0 1 4 0 0 0 0 1 4 1
cache-write 1
split 1 0 2 0
split 1 1 4 1
reorder 1 2 4 3 5
fuse 1 2 4
parallel 1 6
compute-at 4 1 6
inline 0
unroll 4 0
vectorize 1 5
`

func TestReplayIsTheInverseOfTrace(t *testing.T) {
	s, err := Replay(testWorkload(t), []byte(fullTrace))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(s.Trace()); got != fullTrace {
		t.Errorf("got\n%s\nwant\n%s", got, fullTrace)
	}
}

// TestDigestIsStable: records of earlier versions are keyed by it.
func TestDigestIsStable(t *testing.T) {
	const want = "0a53ece29556178ef86757814fba59f1991ff00fee8bf898b08d20f9fd715870"
	if got := Digest([]byte(fullTrace)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestReplayRefusesWhatIsNoTrace(t *testing.T) {
	cases := map[string]struct{ trace, want string }{
		"nothing":         {"", "line 1 is not"},
		"another version": {"tilth-trace 2\n", "line 1 is not"},
		"too many bytes":  {traceHeader + strings.Repeat(" ", maxTraceBytes), "over the limit"},
		"too many steps":  {traceHeader + strings.Repeat("\nreorder 1 0", maxSteps), "more than 512 steps"},
		"the line":        {traceHeader + "\nunroll 0 0\nunroll 9 0", "line 3: unroll"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Replay(testWorkload(t), []byte(c.trace)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestReplayLeavesTheWorkloadAlone: all candidates of a task share it.
func TestReplayLeavesTheWorkloadAlone(t *testing.T) {
	w := testWorkload(t)
	before := w.Text()
	if _, err := Replay(w, []byte(fullTrace)); err != nil {
		t.Fatal(err)
	}
	if w.Text() != before {
		t.Error("the workload changed")
	}
}
