package vta

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// quantisedModel imports a built-in model in bytes.
func quantisedModel(t testing.TB, name string) *program.Program {
	m, err := modelzoo.Build(name, modelzoo.Options{Quantise: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{Storage: Backend{}.Storage(host(t), schedule.Default, array.Invalid)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLegalPointsFitTheScratchpads lowers random points of all tasks of whole models.
func TestLegalPointsFitTheScratchpads(t *testing.T) {
	for name, least := range map[string]int{"resnet-18": 19, "mobilenet-v2": 35} {
		rng := rand.New(rand.NewPCG(1, 1))
		tasks := 0
		for _, task := range quantisedModel(t, name).Tasks {
			s := Backend{}.Space(task.Workload, host(t), schedule.Default)
			for k, q := range append(s.Draws(rng, 5), s.Default()) {
				made, err := s.Apply(q)
				if err != nil {
					t.Fatalf("%s: %v", s.Format(q), err)
				}
				if !accelerated(made) {
					continue
				}
				if k == 0 {
					tasks++
				}
				p, err := lowered(made)
				if err != nil {
					t.Fatalf("%s: %v\n%s", s.Format(q), err, task.Workload.Text())
				}
				if err := p.Verify(); err != nil {
					t.Errorf("%s: %v\n%s", s.Format(q), err, p.Text())
				}
			}
		}
		if tasks != least {
			t.Errorf("the accelerator computes %d tasks of %s instead of %d", tasks, name, least)
		}
	}
}

// TestTasksOfQuantisedModelsAreExact runs the default and a random schedule of tasks that the accelerator computes,
// and compares the cycles with the analytic cost.
func TestTasksOfQuantisedModelsAreExact(t *testing.T) {
	for _, name := range []string{"resnet-18", "mobilenet-v2"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "resnet-18" {
				t.Skip("slow: evaluates billions of products")
			}
			rng := rand.New(rand.NewPCG(1, 1))
			var cases []kerneltest.Case
			var costs []float64
			for k, task := range quantisedModel(t, name).Tasks {
				if testing.Short() && k%8 != 7 {
					continue
				}
				s := Backend{}.Space(task.Workload, host(t), schedule.Default)
				for _, q := range append(s.Draws(rng, 1), s.Default()) {
					made, err := s.Apply(q)
					if err != nil {
						t.Fatal(err)
					}
					if accelerated(made) {
						costs = append(costs, s.Cost(q))
						cases = append(cases, kerneltest.Case{Workload: task.Workload, Schedule: made, Workers: 1, Args: kerneltest.Fill(task.Workload, 1)})
					}
				}
			}
			for k, cycles := range check(t, cases) {
				if ratio := costs[k] / cycles; math.Abs(math.Log(ratio)) > math.Log(1.3) {
					t.Errorf("the cost is %.2f of %.0f cycles\n%s", ratio, cycles, cases[k].Text())
				}
			}
		})
	}
}
