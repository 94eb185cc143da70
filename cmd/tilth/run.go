package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/agent/hostlock"
	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/npz"
	"github.com/tilth-dev/tilth/internal/atomicfile"
	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/internal/stat"
)

const runLong = `Run a package once on the inputs of an .npz file, and time it if asked.

Without --inputs the model runs on made-up data: the same pseudo-random numbers
in [-1, 1) every time, and zeros for inputs that are not float32. That is enough
to time it, and to compare the outputs of two packages of one model.

An interrupt (ctrl-C) stops between two executions; a second one kills.`

type runCommand struct {
	*app
	inputs, outputs    string
	printTime, profile bool
	repeat, number     int
	asJSON             bool
}

// runResult is what a run came to, for scripts.
type runResult struct {
	Package string        `json:"package"`
	Outputs []aot.Tensor  `json:"outputs"`
	Time    *timeResult   `json:"time_ms,omitempty"`
	Profile []profileCall `json:"profile,omitempty"`
}

// timeResult has milliseconds of one execution, over repeat samples of number executions each.
type timeResult struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	StdDev float64 `json:"std"`
	Repeat int     `json:"repeat"`
	Number int     `json:"number"`
}

// profileCall is one kernel's share of an execution.
type profileCall struct {
	Call    string  `json:"call"`
	Task    string  `json:"task"`
	Origin  string  `json:"origin"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"`
}

func newRun(a *app) *cobra.Command {
	r := &runCommand{app: a}
	c := &cobra.Command{
		Use: "run PACKAGE.tar", Short: "Run a package, and time it", Long: runLong,
		Example: `  tilth run resnet18.tar --inputs in.npz --outputs out.npz
  tilth run resnet18.tar --print-time --repeat 50
  tilth run resnet18.tar --profile`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&r.inputs, "inputs", "", "`.npz` file with the inputs by name (default made-up data)")
	c.Flags().StringVar(&r.outputs, "outputs", "", "`.npz` file to write the outputs to")
	c.Flags().BoolVar(&r.printTime, "print-time", false, "print mean, median, min, max and standard deviation in ms")
	c.Flags().IntVar(&r.repeat, "repeat", 10, "samples to time")
	c.Flags().IntVar(&r.number, "number", 1, "executions in a sample")
	c.Flags().BoolVar(&r.profile, "profile", false, "print what each kernel takes (median of --repeat executions)")
	jsonFlag(c, &r.asJSON)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		if r.repeat < 1 || r.number < 1 {
			return usagef("--repeat %d, --number %d: want at least 1", r.repeat, r.number)
		}
		return r.run(ctx, args[0])
	})
}

func (r *runCommand) run(ctx context.Context, path string) error {
	m, err := aot.Load(path)
	if err != nil {
		return err
	}
	defer m.Close()
	inputs, err := r.read(m.Manifest())
	if err != nil {
		return err
	}
	outputs, err := m.Run(inputs)
	if err != nil {
		return err
	}
	if r.outputs != "" {
		if err := atomicfile.Write(r.outputs, func(w io.Writer) error { return npz.Write(w, outputs) }); err != nil {
			return err
		}
	}
	result := runResult{Package: path, Outputs: m.Manifest().Outputs}
	if r.printTime || r.profile {
		if err := r.measure(ctx, m, &result); err != nil {
			return err
		}
	}
	return r.print(result)
}

func (r *runCommand) measure(ctx context.Context, m *aot.Model, result *runResult) error {
	release, err := timing(ctx)
	if err != nil {
		return err
	}
	defer release()
	if r.printTime {
		if result.Time, err = r.time(ctx, m); err != nil {
			return err
		}
	}
	if r.profile {
		result.Profile, err = r.profiled(ctx, m)
	}
	return err
}

// timing keeps this host's agents from computing while something is timed, until release is called.
func timing(ctx context.Context) (release func(), err error) {
	lock, err := hostlock.New(hostlock.DefaultDir())
	if err != nil {
		return nil, err
	}
	return lock.Time(ctx)
}

// read returns the inputs of the file, or made-up ones.
func (r *runCommand) read(manifest *aot.Manifest) (map[string]*array.Array, error) {
	if r.inputs != "" {
		return npz.ReadFile(r.inputs)
	}
	return madeUpInputs(manifest), nil
}

// madeUpInputs are uniform in [-1, 1), or zero where the type is not float32.
func madeUpInputs(manifest *aot.Manifest) map[string]*array.Array {
	rng := rand.New(rand.NewPCG(1, 0))
	inputs := map[string]*array.Array{}
	for _, t := range manifest.Inputs {
		values := array.New(t.Type(), t.Shape...)
		if t.Type() == array.Float32 {
			data := make([]float32, array.Elements(t.Shape))
			for i := range data {
				data[i] = rng.Float32()*2 - 1
			}
			values = array.FromFloat32(data, t.Shape...)
		}
		inputs[t.Name] = values
	}
	return inputs
}

func (r *runCommand) time(ctx context.Context, m *aot.Model) (*timeResult, error) {
	samples, err := m.Time(ctx, r.repeat, r.number)
	if err != nil {
		return nil, err
	}
	s := stat.Of(samples)
	return &timeResult{
		Mean: s.Mean * 1e3, Median: s.Median * 1e3, Min: s.Min * 1e3, Max: s.Max * 1e3, StdDev: s.StdDev * 1e3,
		Repeat: r.repeat, Number: r.number,
	}, nil
}

// profiled takes the median of each call over several executions, slowest first.
func (r *runCommand) profiled(ctx context.Context, m *aot.Model) ([]profileCall, error) {
	manifest := m.Manifest()
	samples := make([][]float64, len(manifest.Calls))
	for range r.repeat {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for i, seconds := range m.Profile() {
			samples[i] = append(samples[i], seconds)
		}
	}
	var calls []profileCall
	total := 0.0
	for i, call := range manifest.Calls {
		task := manifest.Tasks[call.Task]
		c := profileCall{Call: call.Name, Task: task.Name, Origin: task.Origin, Seconds: stat.Of(samples[i]).Median}
		total += c.Seconds
		calls = append(calls, c)
	}
	for i := range calls {
		if total > 0 {
			calls[i].Share = calls[i].Seconds / total
		}
	}
	slices.SortStableFunc(calls, func(a, b profileCall) int {
		switch {
		case a.Seconds > b.Seconds:
			return -1
		case a.Seconds < b.Seconds:
			return 1
		}
		return 0
	})
	return calls, nil
}

func (r *runCommand) print(result runResult) error {
	if r.asJSON {
		return writeJSON(r.stdout, result)
	}
	if t := result.Time; t != nil {
		table := show.NewTable(">mean (ms)", ">median (ms)", ">min (ms)", ">max (ms)", ">std (ms)")
		var cells []string
		for _, v := range []float64{t.Mean, t.Median, t.Min, t.Max, t.StdDev} {
			cells = append(cells, fmt.Sprintf("%.4f", v))
		}
		table.Row(cells...)
		if err := table.Write(r.stdout); err != nil {
			return err
		}
	}
	if len(result.Profile) > 0 {
		table := show.NewTable(">TIME", ">SHARE", "TASK", "SCHEDULE", "NODES")
		for _, c := range result.Profile {
			table.Row(show.Seconds(c.Seconds), fmt.Sprintf("%.1f %%", 100*c.Share), c.Task, c.Origin, c.Call)
		}
		return table.Write(r.stdout)
	}
	if r.outputs == "" && result.Time == nil {
		var parts []string
		for _, t := range result.Outputs {
			parts = append(parts, t.Name+" "+t.String())
		}
		fmt.Fprintf(r.stdout, "ran %s: %s (--outputs FILE.npz keeps them, --print-time times)\n", result.Package, strings.Join(parts, ", "))
	}
	return nil
}
