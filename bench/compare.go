package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"github.com/tilth-dev/tilth/agent/hostlock"
	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/npz"
	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/internal/stat"
)

// comparison is one model on one number of threads, with every contender.
type comparison struct {
	model        string
	threads      int
	packages     []string
	inputs       string // .npz; empty = made up
	rounds, runs int
	ortDir       string
	script       string
}

// contender takes turns with the others.
type contender struct {
	name    string
	turn    func(count int) ([]float64, error)
	samples []float64
	// relativeError is the largest difference from ONNX Runtime's outputs over their largest value.
	relativeError float64
}

// run lets the contenders take turns and writes a table of medians and of ratios to ONNX Runtime's.
func (c *comparison) run(ctx context.Context, w io.Writer) (err error) {
	scratch, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	models, err := c.load()
	if err != nil {
		return err
	}
	defer func() {
		for _, m := range models {
			err = errors.Join(err, m.Close())
		}
	}()
	inputs, err := c.read(models[0].Manifest())
	if err != nil {
		return err
	}
	peer, err := startORT(ctx, c.ortDir, c.script, c.model, c.threads, inputs, scratch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peer.stop()) }()
	contenders, err := c.contenders(ctx, peer, models, inputs)
	if err != nil {
		return err
	}
	if err := c.takeTurns(ctx, contenders); err != nil {
		return err
	}
	return c.write(w, contenders)
}

func (c *comparison) load() (models []*aot.Model, err error) {
	for _, path := range c.packages {
		m, err := aot.Load(path)
		if err != nil {
			return nil, err
		}
		if n := m.Manifest().Target.Threads; n != c.threads {
			return nil, fmt.Errorf("package %s is for %d threads, wanted %d: compile it with --threads %d", path, n, c.threads, c.threads)
		}
		models = append(models, m)
	}
	return models, nil
}

func (c *comparison) read(manifest *aot.Manifest) (map[string]*array.Array, error) {
	if c.inputs != "" {
		return npz.ReadFile(c.inputs)
	}
	rng := rand.New(rand.NewPCG(1, 0))
	inputs := map[string]*array.Array{}
	for _, t := range manifest.Inputs {
		a := array.New(t.Type(), t.Shape...)
		for i := range a.Len() {
			if t.Type().IsFloat() {
				a.SetFloat(i, rng.Float64()*2-1)
			}
		}
		inputs[t.Name] = a
	}
	return inputs, nil
}

// contenders are ONNX Runtime and then the packages, whose answers are compared with its.
func (c *comparison) contenders(ctx context.Context, peer *ort, models []*aot.Model, inputs map[string]*array.Array) ([]*contender, error) {
	list := []*contender{{name: "ONNX Runtime", turn: peer.run}}
	want, err := peer.outputs()
	if err != nil {
		return nil, err
	}
	for i, m := range models {
		got, err := m.Run(inputs)
		if err != nil {
			return nil, err
		}
		turn := func(count int) ([]float64, error) { return m.Time(ctx, count, 1) }
		list = append(list, &contender{name: c.packages[i], turn: turn, relativeError: worst(got, want)})
	}
	return list, nil
}

// worst is the largest difference over all outputs, each relative to its largest value; infinite when one is missing.
func worst(got, want map[string]*array.Array) (relative float64) {
	for name, w := range want {
		g := got[name]
		if g == nil || g.Len() != w.Len() {
			return math.Inf(1)
		}
		largest, difference := 0.0, 0.0
		for i := range w.Len() {
			largest = max(largest, math.Abs(w.Float(i)))
			difference = max(difference, math.Abs(w.Float(i)-g.Float(i)))
		}
		if difference > 0 { // of outputs that are all zeros, too
			relative = max(relative, difference/largest)
		}
	}
	return relative
}

// takeTurns keeps agents of this host from computing meanwhile.
func (c *comparison) takeTurns(ctx context.Context, contenders []*contender) error {
	lock, err := hostlock.New(hostlock.DefaultDir())
	if err != nil {
		return err
	}
	release, err := lock.Time(ctx)
	if err != nil {
		return err
	}
	defer release()
	for range c.rounds {
		for _, one := range contenders {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			samples, err := one.turn(c.runs)
			if err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
			one.samples = append(one.samples, samples...)
		}
	}
	return nil
}

func (c *comparison) write(w io.Writer, contenders []*contender) error {
	fmt.Fprintf(w, "\n%s, %d threads, %d turns of %d runs each\n", c.model, c.threads, c.rounds, c.runs)
	table := show.NewTable("", ">MEDIAN", ">MIN", ">MAX", ">VS ONNX RUNTIME", ">LARGEST ERROR")
	peer := stat.Of(contenders[0].samples).Median
	for i, one := range contenders {
		s := stat.Of(one.samples)
		row := []string{one.name, show.Seconds(s.Median), show.Seconds(s.Min), show.Seconds(s.Max), show.Ratio(peer, s.Median)}
		if i > 0 {
			row = append(row, fmt.Sprintf("%.1e", one.relativeError))
		}
		table.Row(row...)
	}
	return table.Write(w)
}
