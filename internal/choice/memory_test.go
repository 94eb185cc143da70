package choice

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/model"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// products are tasks that multiply 256 rows by square matrices, each called so many times.
func products(t *testing.T, side int64, counts ...int) *graph.Program {
	t.Helper()
	p := &graph.Program{}
	for k, count := range counts {
		text := fmt.Sprintf("tilth-workload 1\ninput t0 f32[%[1]d,%[2]d]\nconstant t1 f32[%[2]d,%[2]d]\n"+
			"sum t2 f32[%[1]d,%[2]d] over %[2]d = (mul [t0 i0 r0] [t1 r0 i1])\noutput t2\n", 256+k, side)
		w, err := expr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Tasks = append(p.Tasks, graph.Task{Workload: w, Name: fmt.Sprintf("product %d", k), Count: count})
	}
	return p
}

// TestSumsDoNotOutgrowTheWeights: of 12 MiB each, 48 MiB in all or a sixth of the weights.
func TestSumsDoNotOutgrowTheWeights(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		counts []int
		direct []bool
	}{
		"few":                  {[]int{1, 3}, []bool{false, false}},
		"the largest do":       {[]int{2, 3}, []bool{true, false}},
		"one is too many":      {[]int{1, 50}, []bool{false, true}},
		"a sixth of the whole": {[]int{10, 40}, []bool{false, true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := products(t, 2048, c.counts...)
			choices, err := Choose(t.Context(), p, machine, schedule.Default, nil, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			for k, want := range c.direct {
				if got := schedule.TraceNumerics(choices[k].Trace) == schedule.Strict; got != want {
					t.Errorf("%s, called %d times: direct %v, not %v", p.Tasks[k].Name, p.Tasks[k].Count, got, want)
				}
			}
		})
	}
}

// TestTransformedWeightsHaveALimit: ResNet-34 by Winograd's algorithm alone would take four times the memory of its weights. What is
// left to direct sums are the convolutions of the smallest images, whose weights gain least.
func TestTransformedWeightsHaveALimit(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Build("resnet-34", model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := graph.Import(m, graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	choices, err := Choose(t.Context(), p, machine, schedule.Default, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	added := int64(0)
	for k, task := range p.Tasks {
		s, err := schedule.Replay(task.Workload, choices[k].Trace)
		if err != nil {
			t.Fatal(err)
		}
		_, all := s.AddedBytes()
		added += all * int64(task.Count)
		if strings.Contains(task.Name, "56x56x64 k3x3 -> 64") && all == 0 {
			t.Errorf("%s is computed directly", task.Name)
		}
	}
	if most := int64(84<<20 + freeBytes); added == 0 || added > most {
		t.Errorf("%d bytes beside the weights, at most %d are allowed", added, most)
	}
}
