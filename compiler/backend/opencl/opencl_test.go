package opencl

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/modulefile"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { kerneltest.Main(m, 1) }

// batchSize is the number of kernels that a process runs. A driver for processors takes half a second for each.
const batchSize = 2

// player compiles cases and runs them on the first OpenCL device.
type player struct {
	tc *toolchain.Toolchain
	on *target.Target
	// dir holds the program and modules.
	dir, program string
}

// newPlayer uses the device whose driver packages.sh installs.
func newPlayer(t testing.TB) *player {
	t.Helper()
	p := &player{dir: t.TempDir()}
	t.Setenv("POCL_CACHE_DIR", t.TempDir())
	var err error
	if p.tc, err = toolchain.Find(t.Context(), os.Getenv(toolchain.Variable)); err != nil {
		t.Fatal(err)
	}
	if p.on, err = (Backend{}).Target(name, 1); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/play.c")
	if err != nil {
		t.Fatal(err)
	}
	p.program = filepath.Join(p.dir, "play")
	headers := append(append(DriverSources(), modulefile.Sources()...), toolchain.File{Name: cruntime.HeaderName, Text: cruntime.Header})
	unit := "#include \"opencl.c\"\n#include \"image.c\"\n" + string(text)
	p.build(t, toolchain.Build{Target: p.on, Form: toolchain.Executable, Headers: headers, Sources: []toolchain.File{{Name: "unit.c", Text: unit}}}, p.program)
	return p
}

func (p *player) build(t testing.TB, b toolchain.Build, path string) {
	t.Helper()
	if err := p.tc.Build(t.Context(), b, path); err != nil {
		t.Fatal(err)
	}
}

// module writes the module of a case.
func (p *player) module(t testing.TB, c kerneltest.Case, path string) {
	t.Helper()
	printed, err := modulefile.Print("k", backend.Kernel{ID: schedule.Digest(c.Schedule.Trace()), Schedule: c.Schedule}, p.on)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Text())
	}
	p.build(t, modulefile.Module(c.Workload, []*modulefile.Printed{printed}, p.on, code), path)
}

// check runs cases, and compares their outputs with the evaluator's.
func (p *player) check(t testing.TB, cases []kerneltest.Case) {
	t.Helper()
	command := []string{p.program, library()}
	for k, c := range cases {
		path := filepath.Join(p.dir, fmt.Sprint("module", k))
		p.module(t, c, path)
		command = append(command, path)
	}
	outputs, at, err := kerneltest.Run(command, cases, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, cases[at].Text())
	}
	for k, c := range cases {
		if text := c.Wrong(outputs[k]); text != "" {
			t.Fatalf("%s\n%s", text, c.Text())
		}
	}
}

// drawn returns a random point of a workload's space.
func drawn(t *rapid.T, w *expr.Workload, on *target.Target) kerneltest.Case {
	s := Backend{}.Space(w, on, schedule.Fast)
	point := s.Default()
	if p, ok := s.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0))); ok {
		point = p
	}
	made, err := s.Apply(point)
	if err != nil {
		t.Fatalf("point %s does not apply: %v\n%s", s.Format(point), err, w.Text())
	}
	return kerneltest.Case{Workload: w, Schedule: made, Workers: 1, Args: kerneltest.Fill(w, 1)}
}

// quickFamilies lists the workloads of the quick tier: products of tiles, and sums that many groups share.
var quickFamilies = []string{"matrices", "totals"}

// TestEveryPointIsRight checks, for all workloads and points, that the kernel compiles, stays within its arrays, and
// agrees with the evaluator.
func TestEveryPointIsRight(t *testing.T) {
	p := newPlayer(t)
	families := kerneltest.Families(append(modeltest.NarrowTasks(t, array.BFloat16), modeltest.NarrowTasks(t, array.Float16)...))
	delete(families, "warpgroups") // "matrices" includes products of these sizes
	for name, draw := range families {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !slices.Contains(quickFamilies, name) {
				t.Skip("slow: the driver optimises each kernel for half a second")
			}
			one := rapid.Custom(func(rt *rapid.T) kerneltest.Case { return drawn(rt, draw(rt).Merge(), p.on) })
			rapid.Check(t, func(rt *rapid.T) { p.check(t, rapid.SliceOfN(one, batchSize, batchSize).Draw(rt, "cases")) })
		})
	}
}
