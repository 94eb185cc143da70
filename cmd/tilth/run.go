package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/aot/profile"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/npz"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/signing"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/runner/packagerun"
)

const runLong = `Run a package once on the inputs of an .npz file, and time it if asked.

Without --inputs the model runs on random data: always the same pseudo-random numbers in
[-1, 1), or zeros for inputs that are not floating-point. Open extents come from the
inputs or from --shape.

--decode continues after that run. It needs a decoder's package, compiled with open
extents for the positions before and during an execution (--shape
sequence=1..32,past=0..511). It keeps keys and values, and runs one position of each
sequence at a time with the highest-scoring token. Inputs and outputs must have the names
of Hugging Face's exporter: input_ids, position_ids, attention_mask and logits.

--profile compares the kernel calls of each task with two limits of this machine,
measured on the package's threads: the rate of multiply-adds in registers (of float32 or,
for integer sums, of 8-bit integers, or 16-bit ones if the processor has no instruction
for those), and the memory read rate. PEAK is the minimum time of the operations divided
by the measured time, or a dash if their rate is unknown. LIMIT is the larger of two
times: of the operations of direct sums, and of the bytes that must be moved at least
once. An algorithm with fewer operations, or data in a cache, may beat it. For a package
on a GPU the limits are the GPU's; each task shows its launches, occupancy and registers,
and the time between launches has its own line.

With --tracker or TILTH_TRACKER, the package runs on a device of a farm with the target
of the package, under the farm's leases and limits. Package and inputs are uploaded
unless the tracker has them; outputs and times are downloaded.

With --emulator, a package for another architecture runs under an emulator, in a small
program built by a cross compiler. It is not timed.

An interrupt (Ctrl-C) stops between two executions, or cancels the run on the farm; a
second one kills the process.`

type runCommand struct {
	*app
	inputs, outputs    string
	printTime, profile bool
	repeat, number     int
	decode             int
	threads            threadsFlags
	emulator           emulatorFlag
	extents            extentsFlag
	farm               runFarmFlags
	machine            machineFlags
	verify             verifyFlag
}

// runResult describes the result of a run in JSON.
type runResult struct {
	Package string       `json:"package"`
	Device  string       `json:"device,omitempty"`
	Job     string       `json:"job,omitempty"`
	Outputs []aot.Tensor `json:"outputs"`
	// LoadSeconds is the time to load the package, and FirstSeconds that of the first execution.
	LoadSeconds  float64     `json:"load_s,omitempty"`
	FirstSeconds float64     `json:"first_run_s,omitempty"`
	Time         *timeResult `json:"time_s,omitempty"`
	// OnDevice is the time on the device without copies of inputs and outputs.
	OnDevice *timeResult      `json:"device_time_s,omitempty"`
	Profile  *profile.Profile `json:"profile,omitempty"`
	Decoded  *decodeResult    `json:"decoded,omitempty"`
}

// timeResult holds the seconds per execution, over repeat samples of number executions each.
type timeResult struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	StdDev float64 `json:"std"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	// PerSecond is the throughput, in executions per second of their mean time.
	PerSecond float64 `json:"inferences_per_s"`
	// WarmUp is the number of executions before the first sample.
	WarmUp int `json:"warm_up"`
	Repeat int `json:"repeat"`
	Number int `json:"number"`
}

func newRun(a *app) *cobra.Command {
	r := &runCommand{app: a}
	c := &cobra.Command{
		Use: "run PACKAGE.tar", Short: "Run a package, and time it", Long: runLong,
		Example: `  tilth run resnet18.tar --inputs in.npz --outputs out.npz
  tilth run resnet18.tar --print-time --repeat 50
  tilth run resnet18.tar --profile
  tilth run resnet18.tar --threads 2 --cpus 0,2 --print-time
  tilth run llama.tar --inputs prompt.npz --decode 64
  tilth run resnet18-riscv64.tar --emulator "qemu-riscv64 -cpu rv64,v=true" --outputs out.npz
  tilth run resnet18.tar --tracker 127.0.0.1:9190 --device rack3/board7 --print-time`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&r.inputs, "inputs", "", "`.npz` file with the inputs by name, or .npy file with the only one (default random data)")
	c.Flags().StringVar(&r.outputs, "outputs", "", "`.npz` file to write the outputs to")
	c.Flags().BoolVar(&r.printTime, "print-time", false, "print mean, median, min, max, standard deviation, p90 and p99 in ms, and inferences/s")
	c.Flags().IntVar(&r.repeat, "repeat", 10, "samples to time")
	c.Flags().IntVar(&r.number, "number", 1, "executions in a sample")
	c.Flags().BoolVar(&r.profile, "profile", false, "print the time of each task (of --repeat executions) and the machine's limits")
	c.Flags().IntVar(&r.decode, "decode", 0, "decode `n` tokens greedily, and print them and their time (decoders)")
	atLeast(c, 1, "repeat", "number")
	atLeast(c, 0, "decode")
	a.tableFlags(c)
	r.threads.add(c)
	r.emulator.add(c, "`command` that runs programs of the machines that the package was compiled for")
	r.extents.add(c)
	c.MarkFlagsMutuallyExclusive("shape", "inputs")
	r.farm.add(c)
	r.verify.add(c, "the package")
	r.machine.add(c, "this machine")
	r.farm.excludes(c, "emulator", "no-wait")
	for _, other := range []string{"threads", "cpus", "print-time", "profile", "decode"} {
		c.MarkFlagsMutuallyExclusive("emulator", other)
	}
	return a.leaf(c, func(ctx context.Context, args []string) error {
		if err := cmp.Or(r.emulator.check(), r.emulator.find(), r.farm.check(), r.threads.check(r.farm.addr != "")); err != nil {
			return err
		}
		if r.farm.addr != "" && r.decode > 0 {
			return usagef("--decode is for packages that run here, not on a farm")
		}
		if r.farm.addr != "" && len(r.extents.chosen) > 0 {
			return usagef("--shape is for packages that run here: on a farm, --inputs have a shape")
		}
		others := map[string]bool{"--json": r.asJSON, "--print-time": r.printTime, "--profile": r.profile, "--decode": r.decode > 0}
		if err := onlyOutput(r.outputs, others); err != nil {
			return err
		}
		if strings.HasSuffix(r.outputs, ".npy") {
			return usagef("--outputs %s: outputs are written as one archive: name an .npz file", r.outputs)
		}
		if r.farm.addr != "" {
			return r.runFarm(ctx, args[0])
		}
		return r.run(ctx, args[0])
	})
}

func (r *runCommand) run(ctx context.Context, path string) error {
	key, err := r.verify.key()
	if err != nil {
		return err
	}
	if key != nil && path == stdio {
		return unsignable("standard input")
	}
	file, done, err := r.inputFile(path)
	if err != nil {
		return err
	}
	defer done()
	began := time.Now()
	m, err := r.load(ctx, file, key)
	if err != nil {
		return err
	}
	defer m.Close()
	loaded := time.Since(began)
	inputs, err := r.read(m.Manifest())
	if err != nil {
		return err
	}
	began = time.Now()
	outputs, err := m.Run(inputs)
	if err != nil {
		return err
	}
	first := time.Since(began)
	if r.outputs != "" {
		if err := r.writeFile(r.outputs, func(w io.Writer) error { return npz.Write(w, outputs) }); err != nil {
			return err
		}
	}
	result := runResult{Package: path, Outputs: m.Manifest().Shown(outputs), LoadSeconds: loaded.Seconds(), FirstSeconds: first.Seconds()}
	if r.printTime || r.profile {
		if err := r.measure(ctx, m, &result); err != nil {
			return err
		}
	}
	if r.decode > 0 {
		if result.Decoded, err = r.decodeTokens(ctx, m, inputs); err != nil {
			return err
		}
	}
	return r.print(result)
}

// load opens a package, under the emulator if there is one.
func (r *runCommand) load(ctx context.Context, path string, key *signing.PublicKey) (*aot.Model, error) {
	if len(r.emulator.command) == 0 {
		return r.threads.load(path, key)
	}
	tc, err := toolchain.Find(ctx, "")
	if err != nil {
		return nil, err
	}
	return aot.LoadUnder(ctx, path, tc, r.emulator.command, key)
}

func (r *runCommand) measure(ctx context.Context, m *aot.Model, result *runResult) error {
	lock, err := r.machine.lock(r.farm.log.logger(r.stderr), nil)
	if err != nil {
		return err
	}
	peak, err := r.peak(ctx, m, lock)
	if err != nil {
		return err
	}
	release, err := lock.Time(ctx)
	if err != nil {
		return err
	}
	defer release()
	if r.printTime {
		samples, err := m.Time(ctx, r.repeat, r.number)
		if err != nil {
			return err
		}
		result.Time = r.summarize(samples)
		if samples, err = m.TimeOnDevice(ctx, r.repeat); err != nil {
			return err
		}
		if samples != nil { // nil for the processor
			result.OnDevice = r.summarize(samples)
			result.OnDevice.Number = 1
		}
	}
	if r.profile {
		result.Profile, err = profile.Of(ctx, m, r.repeat, peak)
	}
	return err
}

// peak returns the peak rates of this machine from the daily measurements that 'tilth tune' uses, too.
// Without a compiler, the package's own measurement replaces them.
func (r *runCommand) peak(ctx context.Context, m *aot.Model, lock *hostlock.Lock) (aot.Peak, error) {
	if !r.profile {
		return aot.Peak{}, nil
	}
	own := m.Peak()
	tc, err := toolchain.Find(ctx, "")
	if err != nil {
		return own, nil
	}
	cache, err := cacheDir()
	if err != nil {
		return own, nil
	}
	rates, err := farm.MeasureRates(ctx, tc, []*target.Target{m.Manifest().Target}, lock, cache)
	switch {
	case ctx.Err() != nil:
		return own, context.Cause(ctx)
	case err != nil:
		return own, nil
	}
	stores := rates[0].Stores
	own.FlopsPerSecond, own.BytesPerSecond = rates[0].FlopPerSecond, stores[len(stores)-1].BytesPerSecond
	return own, nil
}

// read returns the inputs of the file, or random ones.
func (r *runCommand) read(manifest *aot.Manifest) (map[string]*array.Array, error) {
	if r.inputs != "" {
		file, done, err := r.inputFile(r.inputs)
		if err != nil {
			return nil, err
		}
		defer done()
		arrays, err := npz.ReadFile(file)
		if err != nil {
			return nil, err
		}
		return manifest.Adapt(arrays)
	}
	extents, err := r.extents.of(manifest)
	if err != nil {
		return nil, err
	}
	return packagerun.RandomInputs(manifest, extents), nil
}

// warmUp is the number of executions before the first sample: one for the outputs, and that of aot.Model.Time.
const warmUp = 2

func (r *runCommand) summarize(samples []float64) *timeResult {
	s := stats.Of(samples)
	return &timeResult{
		Mean: s.Mean, Median: s.Median, Min: s.Min, Max: s.Max, StdDev: s.StdDev, P90: s.P90, P99: s.P99, PerSecond: 1 / s.Mean,
		WarmUp: warmUp, Repeat: r.repeat, Number: r.number,
	}
}

// printTimes prints the time of an execution and, on a separate line, the time on the device.
func (r *runCommand) printTimes(result runResult) error {
	head := []string{">mean (ms)", ">median (ms)", ">min (ms)", ">max (ms)", ">std (ms)", ">p90 (ms)", ">p99 (ms)"}
	if result.OnDevice != nil {
		head = append(head, "")
	}
	table := humanize.NewTable(head...)
	for k, t := range []*timeResult{result.Time, result.OnDevice} {
		if t == nil {
			continue
		}
		var cells []string
		for _, v := range []float64{t.Mean, t.Median, t.Min, t.Max, t.StdDev, t.P90, t.P99} {
			cells = append(cells, fmt.Sprintf("%.4f", 1e3*v))
		}
		if result.OnDevice != nil {
			cells = append(cells, []string{"with copies of inputs and outputs", "on the device alone"}[k])
		}
		table.Row(cells...)
	}
	if err := table.Write(r.stdout); err != nil {
		return err
	}
	_, err := fmt.Fprintf(r.stdout, "inferences: %s; %d warm-up executions, then %d samples of %d\n", humanize.Rate(result.Time.PerSecond), result.Time.WarmUp, result.Time.Repeat, result.Time.Number)
	return err
}

func (r *runCommand) print(result runResult) error {
	if r.asJSON {
		return writeJSON(r.stdout, result)
	}
	if result.Time != nil {
		if err := r.printTimes(result); err != nil {
			return err
		}
	}
	if result.Decoded != nil {
		if err := result.Decoded.write(r); err != nil {
			return err
		}
	}
	if result.Profile != nil {
		return result.Profile.Write(r.stdout)
	}
	if r.outputs == "" && result.Time == nil && result.Decoded == nil {
		outputs := humanize.Join(result.Outputs, ", ", func(t aot.Tensor) string { return t.Name + " " + t.String() })
		fmt.Fprintf(r.stdout, "ran %s: %s (--outputs FILE.npz keeps them, --print-time times)\n", result.Package, outputs)
	}
	return nil
}
