package graphfuzz

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// graphsPerDecoder is the ratio of graphs to decoders, because each decoder is a package.
const graphsPerDecoder = 12

// maxSteps and maxPast bound the new and past positions of an execution.
const maxSteps, maxPast = 5, 9

// TestRandomDecoders compares a decoder's package with random schedules with the model of fixed length. It runs
// positions one by one or several at once, with the state of earlier executions in memory.
func TestRandomDecoders(t *testing.T) {
	c := newCompiler(t)
	for k := range drawn() / graphsPerDecoder {
		d := GenerateDecoder(*seed+uint64(k), maxSteps)
		if err := checkDecoder(t, c, d); err != nil {
			report(t, d.Case, err)
		}
	}
}

func checkDecoder(t *testing.T, c *Compiler, d *Decoder) error {
	open := map[string]frontend.Bounds{StepExtent: {Min: 1, Max: maxSteps, Caps: []int64{1}}, PastExtent: {Min: 0, Max: maxPast}}
	p, err := frontend.Import(d.Model, frontend.Options{Open: open, Verify: true})
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	m, err := c.open(t, p, d.Seed)
	if err != nil {
		return err
	}
	defer m.Close()
	if m.Manifest().Decoding == nil {
		return fmt.Errorf("the package is no decoder's")
	}
	for _, parts := range [][]int64{{5, 1, 1, 2, 1}, {1, 1, 3, 5}, {2, 4}} {
		if err := d.decode(p, m, parts); err != nil {
			return fmt.Errorf("parts of %v positions: %w", parts, err)
		}
	}
	return nil
}

// open compiles a program with random schedules.
func (c *Compiler) open(t *testing.T, p *program.Program, seed uint64) (*aot.Model, error) {
	choices, err := c.schedules(p.Tasks, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(t.TempDir(), "decoder.tar")
	options := aot.Options{Target: c.Target, Toolchain: c.Toolchain, Parallel: c.Parallel, Objects: c.Objects, Choices: choices, Output: path}
	if _, err := aot.Compile(t.Context(), p, options); err != nil {
		return nil, err
	}
	return aot.Load(path)
}

// decode runs positions in consecutive parts. The first has no past.
func (d *Decoder) decode(p *program.Program, m *aot.Model, parts []int64) error {
	present := map[string]*array.Array{}
	for _, kept := range d.Kept {
		present[kept] = d.Inputs[kept].Head(d.Along, 0)
	}
	past := int64(0)
	for k, n := range parts {
		inputs := map[string]*array.Array{d.Fresh: d.Inputs[d.Fresh].Head(1, n)}
		for name, a := range present {
			inputs[name] = a
		}
		fixed, err := frontend.Import(d.Model, frontend.Options{Shapes: map[string][]int64{StepExtent: {n}, PastExtent: {past}}})
		if err != nil {
			return fmt.Errorf("fixed at %d behind %d: %w", n, past, err)
		}
		want, err := evaluate.Program(fixed, inputs)
		if err != nil {
			return err
		}
		open, err := evaluate.Program(p, inputs)
		if err == nil {
			err = d.Compare(open, want, ownTolerance)
		}
		if err != nil {
			return fmt.Errorf("evaluated, %d behind %d: %w", n, past, err)
		}
		got, err := d.execute(m, inputs, k == 0)
		if err == nil {
			err = d.Compare(got, want, ownTolerance)
		}
		if err != nil {
			return fmt.Errorf("executed, %d behind %d: %w", n, past, err)
		}
		for k, name := range d.Present {
			present[d.Kept[k]] = want[name]
		}
		if past += n; past > maxPast {
			return nil
		}
	}
	return nil
}

// execute runs the model with all inputs first, and then with only the new positions.
func (d *Decoder) execute(m *aot.Model, inputs map[string]*array.Array, first bool) (map[string]*array.Array, error) {
	if first {
		return m.Run(inputs)
	}
	err := m.Continue(map[string]*array.Array{d.Fresh: inputs[d.Fresh]})
	if err == nil {
		err = m.Execute()
	}
	return m.Outputs(), err
}
