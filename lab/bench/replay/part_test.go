package replay

import (
	"reflect"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

func testTarget(t testing.TB) *target.Target {
	t.Helper()
	m, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPartHasTheDefaultAllAlgorithmsAndTheSizeAskedFor(t *testing.T) {
	whole := spaceOf(t, kerneltest.Product(t, 128, 256, 256), testTarget(t), schedule.Default)
	o := PartOptions{Fewest: 200, Most: 300, Measured: []string{"alg=0 tv=3 tw=4 hb=8 cb=4 outer=1 inner=0 ku=4 pf=1024"}}
	values := Part(whole, o)
	part, err := whole.Restrict(values)
	if err != nil {
		t.Fatal(err)
	}
	if all := whole.Algorithms(); len(all) < 2 || !slices.Equal(part.Algorithms(), all) {
		t.Errorf("algorithms %v, want %v", part.Algorithms(), all)
	}
	if p, ok := part.Parse(whole.Format(whole.Default())); !ok || part.Format(p) != whole.Format(whole.Default()) {
		t.Error("the default schedule is not in the part")
	}
	direct, others := 0, 0
	for _, c := range Candidates(part, 0) {
		if part.Algorithm(c.Point) == searchspace.Direct {
			direct++
		} else {
			others++
		}
	}
	if n := direct + others; n < o.Fewest || n > o.Most || direct < o.Fewest/4 || others < o.Fewest/4 {
		t.Errorf("%d direct sums and %d others, want between %d and %d, of neither few", direct, others, o.Fewest, o.Most)
	}
	if again := Part(whole, o); !reflect.DeepEqual(again, values) {
		t.Errorf("chosen again: %v, before %v", again, values)
	}
}

func TestSmallSpaceIsItsOwnPart(t *testing.T) {
	whole := spaceOf(t, kerneltest.Product(t, 1, 8, 16), testTarget(t), schedule.Strict)
	part, err := whole.Restrict(Part(whole, PartOptions{Fewest: 1 << 20, Most: 1 << 21}))
	if err != nil {
		t.Fatal(err)
	}
	if all, some := len(Candidates(whole, 0)), len(Candidates(part, 0)); some != all {
		t.Errorf("%d of %d schedules", some, all)
	}
}

func TestStandardTasksExist(t *testing.T) {
	tasks, err := Standard(array.Storage{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) < 20 {
		t.Errorf("%d tasks, want at least 20", len(tasks))
	}
	workloads, files := map[string]bool{}, map[string]bool{}
	for _, task := range tasks {
		if workloads[task.Workload.Digest()] || files[fileName(task.Name)] {
			t.Errorf("%s appears twice", task.Name)
		}
		workloads[task.Workload.Digest()], files[fileName(task.Name)] = true, true
	}
}

// spaceOf returns the candidate schedules of a workload on a target.
func spaceOf(t testing.TB, w *expr.Workload, on *target.Target, numerics schedule.Numerics) *searchspace.Space {
	t.Helper()
	s, err := registry.Space(w, on, numerics)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
