package gpusim

import (
	"math/rand/v2"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestLegalPointsFitTheCard checks that legal points are within the GPU's limits when lowered, for the tasks of whole
// models, whose sizes tiles seldom divide.
func TestLegalPointsFitTheCard(t *testing.T) {
	on := played(t)
	for _, c := range []struct {
		name     string
		numerics schedule.Numerics
	}{
		{"resnet-18", schedule.Default}, {"mobilenet-v2", schedule.Default}, {"bert-small", schedule.Default}, {"inception-v3", schedule.Default},
		{"mobilenet-v2", schedule.Fast}, {"bert-tiny", schedule.Fast},
	} {
		name, step, random := c.name, 1, 6
		if testing.Short() {
			if step, random = 8, 2; name != "mobilenet-v2" && name != "bert-tiny" {
				continue
			}
		}
		m, err := modelzoo.Build(name, modelzoo.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := frontend.Import(m, frontend.Options{Storage: Backend{}.Storage(on, c.numerics, array.Invalid)})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for k := 0; k < len(p.Tasks); k += step {
			task := p.Tasks[k]
			s := Backend{}.Space(task.Workload, on, c.numerics)
			points := append(s.Defaults(), s.Seeds()...)
			for range random {
				if q, ok := s.Random(rng); ok {
					points = append(points, q)
				}
			}
			for _, q := range points {
				made, err := s.Apply(q)
				if err != nil {
					t.Fatalf("%s: %s: %v", name, s.Format(q), err)
				}
				if _, err := codegen.Lower(made, on.GPU); err != nil {
					t.Errorf("%s: %s: %v\n%s", name, s.Format(q), err, task.Workload.Text())
				}
			}
		}
	}
}

// TestWindowsThatABlockHasNoRoomForHaveASchedule uses a pool of 60 by 80 positions, ten apart.
func TestWindowsThatABlockHasNoRoomForHaveASchedule(t *testing.T) {
	p := modeltest.Import(t, modeltest.New().Input("x", 1, 1, 1000, 1000).Node("y = MaxPool x", modeltest.Ints("kernel_shape", 60, 80),
		modeltest.Ints("strides", 10, 10), modeltest.Ints("dilations", 10, 10)).Output("y"))
	on := played(t)
	s := Backend{}.Space(p.Tasks[0].Workload, on, schedule.Default)
	made, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := codegen.Lower(made, on.GPU); err != nil {
		t.Error(err)
	}
}
