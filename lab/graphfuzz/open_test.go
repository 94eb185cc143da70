package graphfuzz

import (
	"fmt"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// openCase is a case with an open extent, and its program.
type openCase struct {
	*Case
	most    int64
	program *program.Program
}

// openCases draws graphs and keeps those that support an open extent. Models that contain the extent as a constant,
// such as in a shape, do not.
func openCases() (cases []openCase) {
	for k := range drawn() {
		c := openCase{Case: Generate(*seed + uint64(k))}
		most, ok := c.OpenUp()
		if !ok {
			continue
		}
		open := map[string]frontend.Bounds{OpenExtent: {Min: 1, Max: most}}
		p, err := frontend.Import(c.Model, frontend.Options{Open: open, Verify: true})
		if err == nil {
			c.most, c.program = most, p
			cases = append(cases, c)
		}
	}
	return cases
}

// fixed evaluates the program with a fixed extent.
func (c openCase) fixed(t *testing.T, n int64) (inputs, want map[string]*array.Array) {
	inputs, options := c.At(n)
	p, err := frontend.Import(c.Model, options)
	if err == nil {
		want, err = evaluate.Program(p, inputs)
	}
	if err != nil {
		report(t, c.Case, fmt.Errorf("fixed at %d: %w", n, err))
	}
	return inputs, want
}

// TestRandomGraphsWithOpenExtents compares a program with an open extent with the programs of fixed extents.
func TestRandomGraphsWithOpenExtents(t *testing.T) {
	cases := openCases()
	for _, c := range cases {
		for n := int64(1); n <= c.most; n++ {
			inputs, want := c.fixed(t, n)
			got, err := evaluate.Program(c.program, inputs)
			if err == nil {
				err = c.Compare(got, want, ownTolerance)
			}
			if err != nil {
				report(t, c.Case, fmt.Errorf("with %s = %d: %w", OpenExtent, n, err))
			}
		}
	}
	t.Logf("%d of %d graphs were open", len(cases), drawn())
}

// TestPackagesWithOpenExtents does the same for packages, with the state of earlier runs in memory.
func TestPackagesWithOpenExtents(t *testing.T) {
	c := newCompiler(t)
	cases := openCases()
	for first := 0; first < len(cases); first += batch {
		checkOpen(t, c, cases[first:min(first+batch, len(cases))])
	}
}

// checkOpen runs cases together, and one by one after a failure.
func checkOpen(t *testing.T, c *Compiler, cases []openCase) {
	t.Helper()
	var programs []*program.Program
	for _, one := range cases {
		programs = append(programs, one.program)
	}
	var runs [][]map[string]*array.Array
	wants := make([][]map[string]*array.Array, 3)
	for r := range wants { // the maximum, the minimum, and one between
		var inputs []map[string]*array.Array
		for _, one := range cases {
			in, want := one.fixed(t, []int64{one.most, 1, (one.most + 1) / 2}[r])
			inputs, wants[r] = append(inputs, in), append(wants[r], want)
		}
		runs = append(runs, inputs)
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
			if err := one.Compare(outputs[k], wants[r][k], ownTolerance); err != nil {
				report(t, one.Case, fmt.Errorf("run %d: %w", r, err))
			}
		}
	}
}
