package jobclient

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/program"
)

func imported(t *testing.T, name string) *program.Program {
	t.Helper()
	m, err := modelzoo.Build(name, modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTasksThatModelsShareAreOne is a regression test: two models with a common task needed two jobs.
func TestTasksThatModelsShareAreOne(t *testing.T) {
	mlp := imported(t, "mlp").Tasks
	other := []program.Task{mlp[2], mlp[0]}
	other[0].Count = 5
	joined := Join(Model{mlp, 3}, Model{other, 0.5}, Model{mlp[:1], 1})
	if len(joined) != len(mlp) {
		t.Fatalf("%d tasks, want the %d of the first model", len(joined), len(mlp))
	}
	var weights []float64
	for i, task := range joined {
		if task.Index != i {
			t.Errorf("task %d has the index %d", i, task.Index)
		}
		weights = append(weights, task.Weight)
	}
	if want := "[4.5 3 5.5 3]"; fmt.Sprint(weights) != want {
		t.Errorf("weights are %v, want %s", weights, want)
	}
}

func TestWeigh(t *testing.T) {
	all := tasks(t) // dense+relu, dense+relu, dense, softmax
	for _, c := range []struct{ name, list, want, message string }{
		{"in the model's order", "2.5 3 # the last\n\n0.5\trelu\n", "0:0.5 1:0.5 3:2.5", ""},
		{"several at once", "7 0, 2-3", "0:7 2:7 3:7", ""},
		{"nothing", "# none\n", "", "no task is named: write lines of a weight and a task, such as '2.5 dense'"},
		{"no task", "1 0\n2", "", `line 2: "2" names no task: write the weight, a space, and numbers, ranges or parts of names`},
		{"zero", "0 dense", "", `line 1: "0" is not a weight: want a number above 0, such as 2.5`},
		{"negative", "-1 dense", "", `line 1: "-1" is not a weight: want a number above 0, such as 2.5`},
		{"not a number", "NaN dense", "", `line 1: "NaN" is not a weight: want a number above 0, such as 2.5`},
		{"infinite", "+Inf dense", "", `line 1: "+Inf" is not a weight: want a number above 0, such as 2.5`},
		{"out of range", "1e999 dense", "", `line 1: "1e999" is not a weight: want a number above 0, such as 2.5`},
		{"a name alone", "dense", "", `line 1: "dense" is not a weight: want a number above 0, such as 2.5`},
		{"unknown", "1 conv", "", `line 1: tasks "conv": no task is "conv": see 'tilth tasks MODEL'`},
		{"twice", "1 relu\n1 0", "", "line 2: task 0 (dense+relu 1x784 -> 256) has a weight already: name it once"},
	} {
		got, err := WeighByList(all, strings.NewReader(c.list))
		if text(err) != c.message {
			t.Errorf("%s: error %q, want %q", c.name, text(err), c.message)
		}
		var picked []string
		for _, task := range got {
			picked = append(picked, fmt.Sprintf("%d:%g", task.Index, task.Weight))
		}
		if strings.Join(picked, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, picked, c.want)
		}
	}
}

func TestDefaultNamesFitTheWire(t *testing.T) {
	var many Objective
	for i := range 12 {
		many.Add(fmt.Sprint(strings.Repeat("ä", 13), i), &program.Program{}, 1)
	}
	var foreign Objective
	foreign.Add("caf\xe9", &program.Program{}, 1)
	for _, name := range []string{many.Name, foreign.Name} {
		if len(name) == 0 || len(name) > 256 || !utf8.ValidString(name) {
			t.Errorf("the name %q has %d bytes", name, len(name))
		}
	}
}
