package gpusim

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	"pgregory.net/rapid"
)

// batchSize is the number of kernels that are compiled together.
const batchSize = 12

func TestMain(m *testing.M) { kerneltest.Main(m, 4) }

func played(t interface {
	Helper()
	Fatal(...any)
}) *target.Target {
	t.Helper()
	on, err := Backend{}.Target(targetName, 1)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// drawn returns a random point of a workload's space, replayed from its trace.
func drawn(t *rapid.T, w *expr.Workload, on *target.Target) kerneltest.Case {
	s := Backend{}.Space(w, on, rapid.SampledFrom([]schedule.Numerics{schedule.Strict, schedule.Default, schedule.Fast}).Draw(t, "numerics"))
	point := s.Default()
	part := s.Of(rapid.SampledFrom(s.Algorithms()).Draw(t, "algorithm"))
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0))
	if p, ok := part.Random(rng); ok && rapid.IntRange(0, 3).Draw(t, "default") > 0 {
		s, point = part, p
	}
	made, err := s.Apply(point)
	if err != nil {
		t.Fatalf("point %s does not apply: %v\n%s", s.Format(point), err, w.Text())
	}
	replayed, err := schedule.Replay(w, made.Trace())
	if err != nil {
		t.Fatalf("point %s does not replay: %v\n%s", s.Format(point), err, made.Trace())
	}
	return kerneltest.Case{Workload: w, Schedule: replayed, Workers: rapid.IntRange(1, 3).Draw(t, "workers"), Args: kerneltest.Fill(w, 1)}
}

// level returns the optimisation level of simulated kernels. The quick tier saves the compiler's time.
func level() string {
	if testing.Short() {
		return "-O0"
	}
	return "-O1"
}

// check runs cases on the simulated GPU, which must report nothing, and compares their outputs with the evaluator's.
func check(t testing.TB, rt rapid.TB, on *target.Target, cases []kerneltest.Case) {
	u := newUnit(on)
	symbols := make([]string, len(cases))
	for k, c := range cases {
		symbols[k] = fmt.Sprintf("k%d", k)
		if _, err := u.AddWithPacks(symbols[k], symbols[k], c.Schedule); err != nil {
			rt.Fatalf("does not lower: %v\n%s", err, c.Text())
		}
	}
	program, err := toolchaintest.Program(t, "clang-19", append(on.ClangFlags(), "-std=gnu11", level(), "-w"), kerneltest.Source(u.Source(), symbols))
	if err != nil {
		rt.Fatalf("compiling: %v", err)
	}
	outputs, at, err := kerneltest.Run([]string{program}, cases, nil)
	if err != nil {
		rt.Fatalf("%v\n%s", err, cases[at].Text())
	}
	for k, c := range cases {
		if text := c.Wrong(outputs[k]); text != "" {
			rt.Fatalf("%s\n%s", text, c.Text())
		}
	}
}

// narrow returns tasks of float32 models whose factors have 16 bits.
func narrow(t *testing.T) []*expr.Workload {
	return append(modeltest.NarrowTasks(t, array.BFloat16), modeltest.NarrowTasks(t, array.Float16)...)
}

// TestEveryAlgorithmHasPoints checks that its default and random points are legal and within the GPU's limits.
func TestEveryAlgorithmHasPoints(t *testing.T) {
	on := played(t)
	for name, draw := range kerneltest.Families(narrow(t)) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				w := draw(rt).Merge()
				s := Backend{}.Space(w, on, schedule.Fast)
				for _, by := range s.Algorithms() {
					of := s.Of(by)
					points := []searchspace.Point{of.Default()}
					if p, ok := of.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "point"), 0))); ok {
						points = append(points, p)
					}
					for _, p := range points {
						made, err := of.Apply(p)
						if err != nil {
							rt.Fatalf("%s, %s: %v\n%s", by.Name, of.Format(p), err, w.Text())
						}
						if _, err := codegen.Lower(made, on.GPU); err != nil {
							rt.Fatalf("%s, %s: %v\n%s%s", by.Name, of.Format(p), err, w.Text(), made.Trace())
						}
					}
				}
			})
		})
	}
}

// kept is a convolution with two results: its sums with a bias, and their activation.
const kept = `tilth-workload 1
input t0 f32[3,5,32]
constant t1 f32[32,32]
constant t2 f32[32]
sum t3 f32[3,5,32] over 32 = (mul [t0 i0 i1 r0] [t1 r0 i2])
map t4 f32[3,5,32] = (add [t3 i0 i1 i2] [t2 i2])
map t5 f32[3,5,32] = (max [t4 i0 i1 i2] 0x0p+00:f32)
output t4 t5
`

// TestPositionsOfTwoResultsAreNotJoined checks that the first keeps its axes.
func TestPositionsOfTwoResultsAreNotJoined(t *testing.T) {
	w, err := expr.Parse(kept)
	if err != nil {
		t.Fatal(err)
	}
	on := played(t)
	s := Backend{}.Space(w, on, schedule.Fast)
	seeds := 300
	if testing.Short() {
		seeds = 60
	}
	for seed := range uint64(seeds) {
		p, ok := s.Random(rand.New(rand.NewPCG(seed, 0)))
		if !ok {
			t.Fatal("there is no point")
		}
		made, err := s.Apply(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := codegen.Lower(made, on.GPU); err != nil {
			t.Fatalf("%s: %v", s.Format(p), err)
		}
	}
}

// pairs is the minimum number of workload and point pairs to try.
var pairs = flag.Int("pairs", 0, "try at least so many pairs of a workload and a point, in place of -rapid.checks batches of each kind")

// TestEveryPointIsRight checks, for all workloads and points, that the kernel has no races, stays within its arrays,
// and agrees with the evaluator.
func TestEveryPointIsRight(t *testing.T) {
	on := played(t)
	families := kerneltest.Families(narrow(t))
	if each := len(families) * batchSize; *pairs > 0 {
		setFlag(t, "rapid.checks", fmt.Sprint((*pairs+each-1)/each))
	}
	if testing.Short() && *pairs == 0 { // one of each family, in one program
		rapid.Check(t, func(rt *rapid.T) {
			var cases []kerneltest.Case
			for _, name := range slices.Sorted(maps.Keys(families)) {
				cases = append(cases, drawn(rt, families[name](rt).Merge(), on))
			}
			check(t, rt, on, cases)
		})
		return
	}
	right := 0
	for name, draw := range families {
		t.Run(name, func(t *testing.T) {
			one := rapid.Custom(func(t *rapid.T) kerneltest.Case { return drawn(t, draw(t).Merge(), on) })
			rapid.Check(t, func(rt *rapid.T) {
				check(t, rt, on, rapid.SliceOfN(one, batchSize, batchSize).Draw(rt, "cases"))
				right += batchSize
			})
		})
	}
	t.Logf("%d pairs of a workload and a point are right; the seed is %s", right, flag.Lookup("rapid.seed").Value)
}

// setFlag sets a flag for the rest of a test.
func setFlag(t *testing.T, name, value string) {
	t.Helper()
	f := flag.Lookup(name)
	before := f.Value.String()
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(before) }) // the previous value is valid
}

// TestKnownSchedules replays the schedules of testdata/schedules, each of which once generated wrong code. A file has
// a workload, a trace and the number of workers; its name describes the fault.
func TestKnownSchedules(t *testing.T) {
	files, err := filepath.Glob("testdata/schedules/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schedules: %v", err)
	}
	var cases []kerneltest.Case
	for _, file := range files {
		c, err := kerneltest.ReadCase(file)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		cases = append(cases, c)
	}
	check(t, t, played(t), cases)
}

// TestScalarFactorsAreReadInPlace checks that a scalar factor of all terms is read in place.
func TestScalarFactorsAreReadInPlace(t *testing.T) {
	w, err := expr.Parse(`tilth-workload 1
input t0 f32[]
input t1 f32[64,32]
input t2 f32[32,64]
sum t3 f32[64,64] over 32 = (mul [t0] (mul [t1 i0 r0] [t2 r0 i1]))
output t3
`)
	if err != nil {
		t.Fatal(err)
	}
	on := played(t)
	rapid.Check(t, func(rt *rapid.T) { check(t, rt, on, []kerneltest.Case{drawn(rt, w, on)}) })
}
