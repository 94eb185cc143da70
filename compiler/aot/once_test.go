package aot

import (
	"errors"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// TestProgramsThatRunTogetherKeepTheirNames runs the same program twice, with different inputs.
func TestProgramsThatRunTogetherKeepTheirNames(t *testing.T) {
	p := residual(t)
	o := options(t, p)
	inputs := []map[string]*array.Array{{inputName(p): sample(10, rows, width)}, {inputName(p): sample(11, rows, width)}}
	schedules := func([]program.Task) ([]Choice, error) { return o.Choices, nil }
	outputs, err := RunOnce(t.Context(), []*program.Program{p, p}, inputs, o, schedules)
	if err != nil {
		t.Fatal(err)
	}
	for k, got := range outputs {
		want, err := evaluate.Program(p, inputs[k])
		if err != nil {
			t.Fatal(err)
		}
		compare(t, got, want)
	}
	broken := errors.New("no schedules")
	if _, err := RunOnce(t.Context(), []*program.Program{p}, inputs[:1], o, func([]program.Task) ([]Choice, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
