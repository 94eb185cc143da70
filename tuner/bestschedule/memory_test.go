package bestschedule

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
	"pgregory.net/rapid"
)

// products returns tasks that multiply 256 rows by square matrices, with the given numbers of calls.
func products(t *testing.T, side int64, counts ...int) *program.Program {
	t.Helper()
	p := &program.Program{}
	for k, count := range counts {
		text := fmt.Sprintf("tilth-workload 1\ninput t0 f32[%[1]d,%[2]d]\nconstant t1 f32[%[2]d,%[2]d]\n"+
			"sum t2 f32[%[1]d,%[2]d] over %[2]d = (mul [t0 i0 r0] [t1 r0 i1])\noutput t2\n", 256+k, side)
		w, err := expr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Tasks = append(p.Tasks, program.Task{Workload: w, Name: fmt.Sprintf("product %d", k), Count: count})
	}
	return p
}

// TestStrassenMemoryIsBounded checks the limits of 48 MiB and a sixth of the weights, with sums of 12 MiB each.
// Kernels compute the others.
func TestStrassenMemoryIsBounded(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		counts   []int
		computed []bool
	}{
		"few":                  {[]int{1, 3}, []bool{false, false}},
		"the largest do":       {[]int{2, 3}, []bool{true, false}},
		"one is too many":      {[]int{1, 50}, []bool{false, true}},
		"a sixth of the whole": {[]int{10, 40}, []bool{false, true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := products(t, 2048, c.counts...)
			choices, err := Choose(t.Context(), p, machine, schedule.Default, Sources{}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			for k, want := range c.computed {
				s, err := schedule.Replay(p.Tasks[k].Workload, choices[k].Trace)
				if err != nil {
					t.Fatal(err)
				}
				if sums, _ := s.AddedBytes(); (sums == 0) != want || s.Numerics() == schedule.Strict {
					t.Errorf("%s, called %d times: %v adds %d bytes", p.Tasks[k].Name, p.Tasks[k].Count, s.Algorithms(), sums)
				}
			}
		})
	}
}

// defaults returns the choices for a built-in model without records.
func defaults(t *testing.T, name string, o frontend.Options) (*program.Program, []aot.Choice) {
	t.Helper()
	m, err := modelzoo.Build(name, modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return p, chosen(t, p, schedule.Default, Sources{})
}

// chosen returns the choices for a processor with AVX2.
func chosen(t *testing.T, p *program.Program, numerics schedule.Numerics, from Sources) []aot.Choice {
	t.Helper()
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	choices, err := Choose(t.Context(), p, machine, numerics, from, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return choices
}

// TestTransformedWeightsHaveALimit uses ResNet-34, whose weights would quadruple with F(4x4) alone. Convolutions of
// small images must use algorithms with smaller weights rather than direct sums.
func TestTransformedWeightsHaveALimit(t *testing.T) {
	p, choices := defaults(t, "resnet-34", frontend.Options{})
	added := size{}
	for k, task := range p.Tasks {
		s, err := schedule.Replay(task.Workload, choices[k].Trace)
		if err != nil {
			t.Fatal(err)
		}
		_, all := s.AddedBytes()
		added.all += all * int64(task.Count)
		if strings.Contains(task.Name, "k3x3") && !strings.Contains(task.Name, "s2x2") && len(s.Algorithms()) == 0 {
			t.Errorf("%s is computed directly", task.Name)
		}
	}
	if limit := limitOf(p, 0); added.all == 0 || !added.within(limit) {
		t.Errorf("%d bytes beside the weights, at most %d are allowed", added.all, limit.all)
	}
}

// TestHalvesStayHalvesWithoutMeasurements: products with weights in float16, for which other algorithms and types are
// cheaper by the analytic cost, keep them, so that a package is as large as its model.
func TestHalvesStayHalvesWithoutMeasurements(t *testing.T) {
	for d, keeps := range map[array.DType]bool{array.Float32: false, array.Float16: true} {
		m := modeltest.New().Input("x", 1, 64, 56, 56).Known("c", modeltest.Wave(0, 1, 64, 64, 3, 3).As(d)).
			Known("w", modeltest.Wave(0, 1, 1024, 1024).As(d)).Node("y = Conv x c", modeltest.Same3x3).
			Known("rows", array.FromInt64([]int64{196, 1024}, 2)).Node("r = Reshape y rows").Node("z = MatMul r w").Output("z")
		m.Graph.Inputs[0].DType = d
		p := modeltest.Import(t, m)
		for k, c := range chosen(t, p, schedule.Default, Sources{}) {
			s, err := schedule.Replay(p.Tasks[k].Workload, c.Trace)
			if err != nil {
				t.Fatal(err)
			}
			if kept := len(s.Transforms) == 0; kept != keeps {
				t.Errorf("%v: weights of %s are kept: %v, by\n%s", d, p.Tasks[k].Name, kept, c.Trace)
			}
		}
	}
}

// TestAlgorithmsGiveWayToALimitOfThePackage: what transformed weights add fits into the package's size.
func TestAlgorithmsGiveWayToALimitOfThePackage(t *testing.T) {
	p, choices := defaults(t, "resnet-18", frontend.Options{})
	weights := addedBytes(t, p, choices) // of a package without a limit
	for _, allowed := range []int64{weights / 2, 1 << 20, 0} {
		limit := codeBytes + allowed
		for _, task := range p.Tasks {
			for _, c := range task.Workload.Constants {
				limit += array.Elements(c.Shape) * c.DType.Bytes() * int64(task.Count)
			}
		}
		if added := addedBytes(t, p, chosen(t, p, schedule.Default, Sources{MaxBytes: limit})); added > allowed || added > 0 != (allowed > 0) {
			t.Errorf("%d bytes are added of %d, where %d would make the fastest package", added, allowed, weights)
		}
	}
}

func addedBytes(t *testing.T, p *program.Program, choices []aot.Choice) (added int64) {
	t.Helper()
	for k, task := range p.Tasks {
		s, err := schedule.Replay(task.Workload, choices[k].Trace)
		if err != nil {
			t.Fatal(err)
		}
		_, all := s.AddedBytes()
		added += max(0, all) * int64(task.Count)
	}
	return added
}

// TestIntegerModelsStaySmallerThanFloats checks convolutions with integer weights, whose transformed weights are
// floats. Those with many channels, which have most weights, use direct sums. Those with few channels, which gain
// most, do not. The total stays below that of a float model.
func TestIntegerModelsStaySmallerThanFloats(t *testing.T) {
	p, choices := defaults(t, "resnet-18", frontend.Options{Storage: array.Storage{WeightBits: 8}})
	elements, added := int64(0), int64(0)
	for k, task := range p.Tasks {
		s, err := schedule.Replay(task.Workload, choices[k].Trace)
		if err != nil {
			t.Fatal(err)
		}
		_, all := s.AddedBytes()
		added += all * int64(task.Count)
		for _, c := range task.Workload.Constants {
			elements += array.Elements(c.Shape) * int64(task.Count)
		}
		if strings.Contains(task.Name, "56x56x64 k3x3 in 8 bits") && len(s.Algorithms()) == 0 {
			t.Errorf("%s is computed directly", task.Name)
		}
	}
	if added == 0 || elements+added > 3*elements {
		t.Errorf("%d bytes beside %d weights in integers", added, elements)
	}
}

// TestPickIsTheBest compares with all combinations, up to the rounding of the limits.
func TestPickIsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := size{sums: sumsParts << 10, all: allParts << 10}
		tasks := make([]program.Task, rapid.IntRange(1, 5).Draw(t, "tasks"))
		lists := make([][]alternative, len(tasks))
		for k := range tasks {
			tasks[k].Count = rapid.IntRange(1, 3).Draw(t, "count")
			heavy := alternative{seconds: 1, added: drawSize(t)}
			lists[k] = []alternative{heavy}
			for range rapid.IntRange(0, 3).Draw(t, "others") {
				a := alternative{seconds: 1 + rapid.Float64Range(0, 9).Draw(t, "seconds"), added: drawSize(t)}
				lists[k] = append(lists[k], a)
			}
			lists[k] = append(lists[k], alternative{seconds: 20})
		}
		picked := pick(tasks, lists, limit)
		got, added := total(tasks, lists, picked)
		if !added.within(limit) {
			t.Fatalf("%v picks %+v of %+v", picked, added, limit)
		}
		each(lists, func(other []int) {
			if want, added := total(tasks, lists, other); added.within(limit) && want < got-1e-9 {
				t.Fatalf("%v takes %v, %v only %v", picked, got, other, want)
			}
		})
	})
}

// drawSize draws a multiple of the limits' rounding unit, which sometimes exceeds a limit.
func drawSize(t *rapid.T) size {
	sums := rapid.Int64Range(0, sumsParts+1).Draw(t, "sums")
	return size{sums: sums << 10, all: (sums + rapid.Int64Range(1, allParts).Draw(t, "all")) << 10}
}

func total(tasks []program.Task, lists [][]alternative, picked []int) (seconds float64, added size) {
	for k, list := range lists {
		a := list[picked[k]]
		seconds += float64(tasks[k].Count) * a.seconds
		added.sums += a.added.sums
		added.all += a.added.all
	}
	return seconds, added
}

// each visits all combinations.
func each(lists [][]alternative, visit func(picked []int)) {
	picked := make([]int, len(lists))
	for {
		visit(picked)
		k := 0
		for ; k < len(lists); k++ {
			if picked[k]++; picked[k] < len(lists[k]) {
				break
			}
			picked[k] = 0
		}
		if k == len(lists) {
			return
		}
	}
}
