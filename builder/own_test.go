package builder

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/own"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/runner"
)

// written are candidates of a kernel for a workload, with the values 1 to n of its knob.
func written(t *testing.T, w *expr.Workload, arch, name, source string, n int64) (list []Candidate) {
	t.Helper()
	lines := `"` + strings.ReplaceAll(strings.TrimSuffix(w.Text(), "\n"), "\n", `","`) + `"`
	k, err := own.Parse(fmt.Appendf(nil, `{"name":%q,"arch":%q,"numerics":"strict","workloads":[{"text":[%s]}],`+
		`"knobs":[{"name":"A","values":[1,2,3]}],"source":%q}`, name, arch, lines, source))
	if err != nil {
		t.Fatal(err)
	}
	for v := int64(1); v <= n; v++ {
		c, err := k.At(w, []int64{v})
		if err != nil {
			t.Fatal(err)
		}
		s := schedule.New(w)
		if err := s.UseOwn(c); err != nil {
			t.Fatal(err)
		}
		list = append(list, Candidate{schedule.Digest(s.Trace()), s.Trace()})
	}
	return list
}

// TestAnOwnKernelCostsNoOther: what its module does when it is loaded is not done beside schedules, nor beside another
// kernel.
func TestAnOwnKernelCostsNoOther(t *testing.T) {
	c, w, machine := newCompiler(t, ""), product(t), native(t)
	c.OwnKernels, c.Parallel = true, 1
	const empty = "void kernel(const struct tilth_runtime *rt, void *const *args, void *workspace) {}"
	const crash = "__attribute__((constructor)) static void crash(void) { __builtin_trap(); }\n" + empty
	schedules := tiled(t, w, 2, 4)
	bad, wrong := written(t, w, machine.Arch(), "bad", crash, 2), written(t, w, machine.Arch(), "wrong", empty, 1)
	built, err := c.Build(t.Context(), t.TempDir(), Batch{Workload: w, Target: machine,
		Candidates: slices.Concat(schedules[:1], bad[:1], wrong, schedules[1:], bad[1:])})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, o := range built.Outcomes {
		ids = append(ids, o.Candidate)
		if o.Error != none {
			t.Fatalf("%s: %v %s", o.Candidate, o.Error, o.Message)
		}
	}
	if len(built.Objects) != 3 {
		t.Errorf("%d objects of schedules and two kernels", len(built.Objects))
	}
	verdicts := map[string]runner.Outcome{}
	plan := runner.Plan{Harness: built.Harness, Reference: built.Reference, Candidates: built.Objects, Kernels: ids, Threads: 2}
	if err := runner.Measure(t.Context(), plan, func(o runner.Outcome) { verdicts[o.Kernel] = o }); err != nil {
		t.Fatal(err)
	}
	for _, s := range schedules {
		if o := verdicts[s.Digest]; o.Error != none || o.Kernel == "" {
			t.Errorf("a schedule: %v %s", o.Error, o.Message)
		}
	}
	for _, k := range slices.Concat(bad, wrong) {
		if o := verdicts[k.Digest]; o.Error == none || o.Kernel == "" {
			t.Errorf("a bad kernel: %+v", o)
		}
	}
}
