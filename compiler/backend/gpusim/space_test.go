package gpusim

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/kerneltest"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain/toolchaintest"
	"github.com/tilth-dev/tilth/testkit/sketch"
	"pgregory.net/rapid"
)

// batchSize is how many kernels are compiled together.
const batchSize = 24

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

// drawn is a random point of a workload's space, replayed from its trace.
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

// check runs cases on the simulated GPU, which must find nothing, and compares their outputs with the evaluator's.
func check(t testing.TB, rt rapid.TB, on *target.Target, cases []kerneltest.Case) {
	u := newUnit(on)
	symbols := make([]string, len(cases))
	for k, c := range cases {
		symbols[k] = fmt.Sprintf("k%d", k)
		if _, err := u.AddWithPacks(symbols[k], symbols[k], c.Schedule); err != nil {
			rt.Fatalf("does not lower: %v\n%s", err, c.Text())
		}
	}
	program, err := toolchaintest.Program(t, "clang-19", append(on.ClangFlags(), "-std=gnu11", "-O1", "-w"), kerneltest.Source(u.Source(), symbols))
	if err != nil {
		rt.Fatalf("compiling: %v", err)
	}
	outputs, at, err := kerneltest.Run([]string{program}, cases, nil)
	if err != nil {
		rt.Fatalf("%v\n%s", err, cases[at].Text())
	}
	for k, c := range cases {
		if text := c.Wrong(outputs[k], codegen.Tolerance(c.Workload)*codegen.Growth(c.Schedule)); text != "" {
			rt.Fatalf("%s\n%s", text, c.Text())
		}
	}
}

// narrow draws tasks of models in float32 whose factors have 16 bits.
func narrow(t *testing.T) func(*rapid.T) *expr.Workload {
	tasks := sketch.NarrowTasks(t, Backend{}.Storage(played(t), schedule.Fast))
	return func(t *rapid.T) *expr.Workload { return rapid.SampledFrom(tasks).Draw(t, "task") }
}

// TestEveryPointIsRight: whatever the workload and the point, the kernel is free of races, stays within its arrays,
// and computes what the evaluator does.
func TestEveryPointIsRight(t *testing.T) {
	on := played(t)
	for name, draw := range map[string]func(*rapid.T) *expr.Workload{
		"any": kerneltest.DrawWorkload, "product": kerneltest.DrawProduct, "convolution": kerneltest.DrawConv,
		"integers": kerneltest.DrawIntegerProduct, "rows": kerneltest.DrawRows, "matrices": kerneltest.DrawMatrices,
		"attention": kerneltest.DrawAttention, "warpgroups": kerneltest.DrawWarpgroups, "sums": kerneltest.DrawSums,
		"windows": kerneltest.DrawWindows, "groups": kerneltest.DrawGroups, "narrow": narrow(t),
	} {
		t.Run(name, func(t *testing.T) {
			one := rapid.Custom(func(t *rapid.T) kerneltest.Case { return drawn(t, draw(t).Merge(), on) })
			rapid.Check(t, func(rt *rapid.T) {
				check(t, rt, on, rapid.SliceOfN(one, 1, batchSize).Draw(rt, "cases"))
			})
		})
	}
}

// TestKnownSchedules replays the schedules of testdata/schedules, each of which once made wrong code. A file has a
// workload, a trace and the number of workers; its name says what was wrong.
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
