package runner

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/stat"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner/energy"
)

// Plan is what to measure: candidates of one workload.
type Plan struct {
	// Harness is the harness's executable for the target; Reference and Candidates are the shared objects.
	Harness, Reference string
	Candidates         []string
	// Kernels are the ids of the candidates to measure; empty = all that are in the objects.
	Kernels []string
	// Finalists take turns, in the order of Kernels; there are at most 8.
	Finalists bool
	// Alike has candidates get as many samples as limits allow, whether or not they are slower than others; it has no
	// effect on finalists.
	Alike bool
	// Emulator, when set, is the command that runs programs of the target, e.g. qemu-aarch64 -L
	// /usr/aarch64-linux-gnu.
	Emulator []string
	Threads  int
	// CPUs are the logical processors that the harness runs on; nil = any.
	CPUs []int
	// Device is the device that candidates run on, where that is not the processor.
	Device *backend.Device
	// Line opens the link to a device that has one, for a harness; it sees to it that the device answers.
	Line func(ctx context.Context) (*os.File, error)
	// scratch is a folder for the driver of a device; empty = it needs none.
	scratch string
	// Seed selects the data; candidates are not told of it.
	Seed uint64
	// ReferenceCache is a file that keeps the reference's results between calls; empty = none. Candidates do not see
	// it.
	ReferenceCache string
	// Meter, when set, tells the energy of each candidate. None races the best then, which may be slower than another.
	Meter *energy.Meter
	// BestSeconds is the latency of the best candidate known; 0 = none. BestSamples are its samples where they are
	// known.
	BestSeconds float64
	BestSamples []float64
	// Calibration remembers the device's calibrations between plans; nil = each plan for itself.
	Calibration *Calibration
	// Pool has processes for a device that is no processor; nil = the plan has its own.
	Pool *Pool
	// BuiltBy is whose builder sent the files. What ran the code of one's serves no other's plans.
	BuiltBy string
	// Sandbox is what the harness runs in; nil = limits only.
	Sandbox *sandbox.Sandbox
	Limits  Limits
}

// Outcome is the result of one candidate.
type Outcome struct {
	// Kernel is the candidate's id.
	Kernel string
	// Error is NONE, WRONG_RESULT, CRASH or TIMEOUT.
	Error   tilthv1.ErrorClass
	Message string
	// Samples are seconds of one execution each, in the order taken.
	Samples       []float64
	RelativeError float64
	RunSeconds    float64
	// EnergyJoules is that of one execution; 0 without a meter.
	EnergyJoules float64
	// CalibrationRatio says how calm the device was: time of the calibration kernel over the best known; 0 = not
	// known.
	CalibrationRatio float64
	// Remeasured says why the candidate was measured more than once in a plan; empty = it was not.
	Remeasured string
}

// Measure runs the plan and calls report with the outcome of each kernel, in their order, as soon as it is known and
// the device is known to have been calm, or never to become so. A candidate that crashes or hangs costs only itself,
// an object that does so when it is loaded only the candidates in it, which are reported last. The error means that
// the device or the artifacts are at fault or ctx ended: the candidates not reported are not measured.
func Measure(ctx context.Context, p Plan, report func(Outcome)) error {
	if p.Finalists && len(p.Kernels) > wire.MostFinalists {
		return fmt.Errorf("harness: %d finalists, at most %d can take turns", len(p.Kernels), wire.MostFinalists)
	}
	if p.linked() {
		p.Limits = p.Limits.forLinks()
	}
	p.Limits = p.Limits.withDefaults(p.BestSeconds, p.Finalists)
	if p.Calibration == nil {
		p.Calibration = &Calibration{}
	}
	if err := p.show(); err != nil {
		return err
	}
	results, err := openResults(ctx, p)
	if err != nil {
		return err
	}
	defer results.Close()
	closed, err := p.openForDevice()
	if err != nil {
		return err
	}
	defer closed()
	defer p.Pool.rest()
	return (&objects{plan: p, results: results, report: report}).measure(ctx)
}

// show lets others read the plan's files, as the harness may run as another user.
func (p Plan) show() error {
	for _, path := range append([]string{p.Harness, p.Reference}, p.Candidates...) {
		if err := sandbox.Share(path, path == p.Harness); err != nil {
			return fmt.Errorf("harness: %w", err)
		}
	}
	return nil
}

// patience is how much time a harness process may spend on waiting for a calm device, in seconds. Finalists, which are
// few, always have all.
func (p Plan) patience() float64 {
	most := p.Limits.Patience.Seconds()
	if p.Finalists {
		return most
	}
	return p.Calibration.patience(most)
}

// command is what the harness is started with for the kernels that have no outcome yet.
func (p Plan) command(outcomes []*Outcome, patience float64) sandbox.Command {
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	high, spread := p.incumbent()
	args := append(p.common(),
		"--incumbent-median", float(p.BestSeconds), "--incumbent-seconds", float(high), "--incumbent-spread", float(spread),
		"--calibration-seconds", float(p.Calibration.BestSeconds()), "--patience-seconds", float(patience),
		"--sample-seconds", float(p.Limits.Sample.Seconds()),
		"--budget-seconds", float(p.Limits.Budget.Seconds()), "--samples", strconv.Itoa(p.Limits.Samples),
		"--least-samples", strconv.Itoa(p.Limits.LeastSamples))
	if p.Alike || p.Meter != nil {
		args = append(args, "--alike", "1")
	}
	if p.Meter != nil {
		args = append(args, "--sustain-seconds", float(p.Meter.Window().Seconds()))
	}
	for _, id := range p.Kernels {
		args = append(args, "--kernel", id)
	}
	args = append(args, p.left(outcomes)...)
	return p.sandboxed(append(append(args, p.Reference), p.Candidates...))
}

// common are the arguments of every harness.
func (p Plan) common() []string {
	return append([]string{"--threads", strconv.Itoa(p.Threads), "--seed", strconv.FormatUint(seedOf(p.Seed, constants), 10),
		"--answers-fd", strconv.Itoa(answersDescriptor)}, p.deviceArguments()...)
}

// sandboxed is a harness with its files and limits.
func (p Plan) sandboxed(args []string) sandbox.Command {
	return sandbox.Command{Launcher: p.Emulator, Program: p.Harness, Args: args, Files: append([]string{p.Reference}, p.Candidates...),
		Limits: sandbox.Limits{MemoryBytes: p.Limits.MemoryBytes, ReservedBytes: p.reserved(), ProcessorTime: p.processorTime(),
			Processes: p.Threads + spareThreads, OpenFiles: mostOpenFiles}}
}

// left tells the harness which kernels are done.
func (p Plan) left(outcomes []*Outcome) []string {
	var done []string
	first := 0
	for k, o := range outcomes {
		if o == nil {
			continue
		}
		first = max(first, k+1)
		done = append(done, "--without", strconv.Itoa(k))
	}
	if p.Finalists {
		return append(done, "--finalists", "1")
	}
	return []string{"--first", strconv.Itoa(first)}
}

// quartilesNormal is the distance of a normal distribution's quartiles in standard deviations.
const quartilesNormal = 1.349

// incumbent is what a candidate races against: the upper end of the best one's interval, and the standard deviation of
// its samples.
func (p Plan) incumbent() (high, spread float64) {
	if len(p.BestSamples) == 0 {
		return p.BestSeconds, 0
	}
	low, _, up := stat.Quartiles(p.BestSamples)
	return stat.MedianInterval(p.BestSamples).High, (up - low) / quartilesNormal
}
