package graph

import (
	"fmt"
	"testing"

	"github.com/tilth-dev/tilth/internal/opcases"
)

func TestOperatorsComputeWhatONNXRuntimeDoes(t *testing.T) {
	cases, err := opcases.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { checkRecorded(t, c) })
	}
}

func checkRecorded(t *testing.T, c *opcases.Case) {
	m, inputs, err := c.Model()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Import(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	outs, err := p.Evaluate(inputs)
	if err != nil {
		t.Fatal(err)
	}
	for k, out := range c.Outputs {
		want, err := out.Array()
		if err != nil {
			t.Fatal(err)
		}
		if err := compare(outs[fmt.Sprintf("y%d", k)], want); err != nil {
			t.Errorf("result %d: %v", k, err)
		}
	}
}
