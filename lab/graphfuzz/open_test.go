package graphfuzz

import (
	"fmt"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// openCase is a case with open extents, its program, and its inputs and outputs at several sizes.
type openCase struct {
	*Case
	program *program.Program
	at      []*Case
	want    []map[string]*array.Array
}

// maxRefused is the maximum number of open graphs that the compiler refuses although it supports them at fixed sizes:
// one in fifty, but at least one.
func maxRefused(graphs int) int { return max(1, graphs/50) }

// openCases draws graphs with open extents and reports those that the compiler refuses.
func openCases(t *testing.T, graphs int) (cases []openCase) {
	t.Helper()
	refused := 0
	for k := range graphs {
		c := openCase{Case: GenerateOpen(*seed + uint64(k))}
		if err := c.fix(); err != nil {
			report(t, c.Case, err)
			continue
		}
		var err error
		if c.program, err = frontend.Import(c.Model, frontend.Options{Open: c.Bounds(), Verify: true}); err != nil {
			refused++
			t.Logf("seed %d is refused: %v", c.Seed, err)
			keepCase(t, c.Case)
			continue
		}
		cases = append(cases, c)
	}
	if t.Logf("%d of %d graphs were open", len(cases), graphs); refused > maxRefused(graphs) {
		t.Errorf("%d graphs are refused, more than %d of %d", refused, maxRefused(graphs), graphs)
	}
	return cases
}

// fix evaluates the model with fixed extents.
func (c *openCase) fix() error {
	for _, sizes := range c.Sizes() {
		one, options := c.At(sizes)
		p, err := frontend.Import(c.Model, options)
		if err != nil {
			return fmt.Errorf("import with %v: %w", sizes, err)
		}
		want, err := evaluate.Program(p, one.Inputs)
		if err != nil {
			return fmt.Errorf("fixed at %v: %w", sizes, err)
		}
		c.at, c.want = append(c.at, one), append(c.want, want)
	}
	return nil
}

// TestRandomGraphsWithOpenExtents compares a program with open extents with the programs of fixed extents, and with
// ONNX Runtime at one size.
func TestRandomGraphsWithOpenExtents(t *testing.T) {
	p := startPeer(t)
	for _, c := range openCases(t, drawn()) {
		for k, one := range c.at {
			got, err := evaluate.Program(c.program, one.Inputs)
			if err == nil {
				err = c.Compare(got, c.want[k], ownTolerance)
			}
			if err != nil {
				report(t, one, err)
				break
			}
			if p != nil && k == int(c.Seed)%len(c.at) {
				p.check(t, one, got)
			}
		}
	}
	if p != nil {
		t.Logf("ONNX Runtime: %d graphs compared, %d refused, %d ended it", p.compared, p.refused, p.ended)
	}
}

// openShare is the number of graphs for each that is compiled with open extents, which takes kernels for smaller ones.
const openShare = 4

// TestPackagesWithOpenExtents does the same for packages, with the state of earlier runs in memory.
func TestPackagesWithOpenExtents(t *testing.T) {
	c := newCompiler(t)
	cases := openCases(t, drawn()/openShare)
	for first := 0; first < len(cases); first += batch {
		checkOpen(t, c, cases[first:min(first+batch, len(cases))])
	}
}

// checkOpen runs cases together, and one by one after a failure.
func checkOpen(t *testing.T, c *Compiler, cases []openCase) {
	t.Helper()
	var programs []*program.Program
	runs := make([][]map[string]*array.Array, len(cases[0].at))
	for _, one := range cases {
		programs = append(programs, one.program)
		for r, at := range one.at {
			runs[r] = append(runs[r], at.Inputs)
		}
	}
	results, err := c.RunAll(t.Context(), programs, runs, cases[0].Seed)
	if err != nil && len(cases) > 1 {
		for _, one := range cases {
			checkOpen(t, c, []openCase{one})
		}
		return
	}
	if err != nil {
		report(t, cases[0].Case, err)
		return
	}
	for r, outputs := range results {
		for k, one := range cases {
			if err := one.Compare(outputs[k], one.want[r], ownTolerance); err != nil {
				report(t, one.at[r], fmt.Errorf("run %d: %w", r, err))
			}
		}
	}
}
