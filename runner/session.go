package runner

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Plan describes a measurement: candidates of one workload.
type Plan struct {
	// Harness is the harness executable for the target. Reference and Candidates are shared objects.
	Harness, Reference string
	Candidates         []string
	// Kernels lists the ids of the candidates to measure; empty means all in the objects.
	Kernels []string
	// Finalists makes up to 8 candidates take turns, in the order of Kernels.
	Finalists bool
	// Alike gives all candidates as many samples as the limits allow, even slow ones. It has no effect on finalists.
	Alike bool
	// Emulator, if set, is the command that runs programs of the target, such as qemu-aarch64 -L
	// /usr/aarch64-linux-gnu.
	Emulator []string
	Threads  int
	// CPUs lists the logical processors of the harness; nil means any.
	CPUs []int
	// Device is the device that candidates run on; nil means the processor.
	Device *backend.Device
	// Line opens the link to a linked device for a harness, after making sure that the device answers.
	Line func(ctx context.Context) (*os.File, error)
	// scratch is a folder for a device's driver; empty if it needs none.
	scratch string
	// Seed selects the data; candidates do not know it.
	Seed uint64
	// ReferenceCache is a file that stores the reference's results between calls; empty disables that.
	// Candidates cannot see it.
	ReferenceCache string
	// Meter, if set, measures the energy of each candidate. Candidates then do not race against the best,
	// which may be slower.
	Meter *EnergyMeter
	// BestSeconds is the latency of the best known candidate, or 0. BestSamples holds its samples, if known.
	BestSeconds float64
	BestSamples []float64
	// Calibration remembers the device's calibrations between plans; nil disables that.
	Calibration *Calibration
	// Pool provides processes for a device other than the processor; nil means that the plan starts its own.
	Pool *Pool
	// BuiltBy identifies the builder of the files. A process that ran code of one builder serves no plans of others.
	BuiltBy string
	// Sandbox isolates the harness; nil means limits only.
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
	// Samples holds the seconds per execution, in the order taken.
	Samples       []float64
	RelativeError float64
	RunSeconds    float64
	// EnergyJoules is the energy of one execution; 0 without a meter.
	EnergyJoules float64
	// CalibrationRatio is the calibration time relative to the best known, a measure of disturbance; 0 if unknown.
	CalibrationRatio float64
	// Remeasured is why the candidate was measured more than once in a plan, or empty.
	Remeasured string
}

// Measure runs the plan and calls report with the outcome of each kernel, in order. It reports an outcome as soon as
// calibrations show that the device was calm, or that it will not become calm. A candidate that crashes or hangs
// fails alone. An object that does so while being loaded fails its candidates, which are reported last. An error
// means that the device or the artifacts are at fault, or that ctx ended; unreported candidates are then unmeasured.
func Measure(ctx context.Context, p Plan, report func(Outcome)) error {
	if p.Finalists && len(p.Kernels) > wire.MaxFinalists {
		return fmt.Errorf("harness: %d finalists, at most %d can take turns", len(p.Kernels), wire.MaxFinalists)
	}
	p.Calibration = cmp.Or(p.Calibration, &Calibration{})
	results, err := p.open(ctx)
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

// open completes the plan's limits, shows its files, and reads or computes the results of its reference.
func (p *Plan) open(ctx context.Context) (*results, error) {
	if p.linked() {
		p.Limits = p.Limits.forLinks()
	}
	p.Limits = p.Limits.withDefaults(p.BestSeconds, p.Finalists)
	if err := p.show(); err != nil {
		return nil, err
	}
	return openResults(ctx, *p)
}

// prepare stores the results of the plan's reference in its cache, for Measure.
func (p Plan) prepare(ctx context.Context) error {
	r, err := p.open(ctx)
	if err != nil {
		return err
	}
	return r.Close()
}

// show makes the plan's files readable for others, because the harness may run as a different user.
func (p Plan) show() error {
	for _, path := range append([]string{p.Harness, p.Reference}, p.Candidates...) {
		if err := sandbox.Share(path, path == p.Harness); err != nil {
			return fmt.Errorf("harness: %w", err)
		}
	}
	return nil
}

// patience returns how many seconds a harness process may wait for a calm device. Finalists, being few,
// always get the maximum.
func (p Plan) patience() float64 {
	limit := p.Limits.Patience.Seconds()
	if p.Finalists {
		return limit
	}
	return p.Calibration.patience(limit)
}

// command returns the harness command for the kernels without an outcome.
func (p Plan) command(outcomes []*Outcome, patience float64) sandbox.Command {
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	high, spread := p.incumbent()
	args := append(p.common(),
		"--incumbent-median", float(p.BestSeconds), "--incumbent-seconds", float(high), "--incumbent-spread", float(spread),
		"--calibration-seconds", float(p.Calibration.BestSeconds()), "--patience-seconds", float(patience),
		"--sample-seconds", float(p.Limits.Sample.Seconds()),
		"--budget-seconds", float(p.Limits.Budget.Seconds()), "--samples", strconv.Itoa(p.Limits.Samples),
		"--least-samples", strconv.Itoa(p.Limits.MinSamples))
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

// common returns the arguments of every harness.
func (p Plan) common() []string {
	return append([]string{"--threads", strconv.Itoa(p.Threads), "--seed", strconv.FormatUint(seedOf(p.Seed, constants), 10),
		"--answers-fd", strconv.Itoa(answersDescriptor)}, p.deviceArguments()...)
}

// sandboxed returns a harness command with its files and limits.
func (p Plan) sandboxed(args []string) sandbox.Command {
	return sandbox.Command{Launcher: p.Emulator, Program: p.Harness, Args: args, Files: append([]string{p.Reference}, p.Candidates...),
		Limits: sandbox.Limits{MemoryBytes: p.Limits.MemoryBytes, ReservedBytes: p.reserved(), ProcessorTime: p.processorTime(),
			Processes: p.Threads + spareThreads, OpenFiles: maxOpenFiles}}
}

// left returns the arguments that mark kernels as done.
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

// quartilesNormal is the interquartile range of a normal distribution in standard deviations.
const quartilesNormal = 1.349

// incumbent returns the best candidate's upper confidence limit and standard deviation, against which candidates race.
func (p Plan) incumbent() (high, spread float64) {
	if len(p.BestSamples) == 0 {
		return p.BestSeconds, 0
	}
	low, _, up := stats.Quartiles(p.BestSamples)
	return stats.MedianInterval(p.BestSamples).High, (up - low) / quartilesNormal
}

// command is a command to a harness; see cruntime/harness/judge.h.
type command struct {
	op            byte
	seed, slot, n uint64
}

const (
	cmdContinue = 'o'
	cmdWrong    = 'w'
	cmdFillSets = 'f'
	cmdRunSets  = 'r'
	cmdLoad     = 'l'
	cmdEnough   = 'e'
	// cmdArguments is followed by n bytes: the command line for a pooled process.
	cmdArguments = 'a'
)

// writeTimeout is how long a harness may leave commands unread. A pipe holds thousands, and the harness requests
// one at a time.
const writeTimeout = time.Second

// send writes a command to the harness. It is a no-op after the harness has exited; its report explains why.
func (p *process) send(w command) error {
	if err := p.commands.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("the harness: %w", err)
	}
	text := binary.NativeEndian.AppendUint64(nil, uint64(w.op))
	for _, v := range []uint64{w.seed, w.slot, w.n} {
		text = binary.NativeEndian.AppendUint64(text, v)
	}
	_, err := p.commands.Write(text)
	switch {
	case err != nil && p.ended.Load():
		return fmt.Errorf("the harness: %w", err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errGarbled
	}
	return nil
}

// workload reads the harness's description of the workload, which precedes all requests.
func (p *process) workload(limit time.Duration) (*Workload, error) {
	for {
		e, err := p.next(limit)
		switch {
		case err != nil:
			return nil, err
		case e.Event == "start" && e.Index == -1:
		case e.Event == "workload":
			for k := range e.Args {
				e.Args[k].Tolerance = max(e.Args[k].Tolerance, e.Tolerance)
			}
			return &Workload{Args: e.Args}, nil
		case e.Event == "error", e.Event == "fault":
			return nil, &infraError{e.Message}
		case e.Event == "lost":
			return nil, e.lost()
		default:
			return nil, errGarbled
		}
	}
}

// run makes a harness run on sets of data and waits for it.
func (p *process) run(w command, limit time.Duration) error {
	if err := p.send(w); err != nil {
		return err
	}
	e, err := p.next(limit)
	switch {
	case err != nil:
		return err
	case e.Event == "done":
		return nil
	case e.Event == "error", e.Event == "fault":
		return &infraError{e.Message}
	case e.Event == "lost":
		return e.lost()
	case e.Event == "timeout":
		return &overdueError{e.Message}
	}
	return errGarbled
}

// event is one line of the harness's report; see cruntime/harness/report.h.
type event struct {
	// Event is ready, workload, load, module, calibration, start, ran, sustain, sustained, outcome, fault,
	// timeout, lost, too-large, error or done.
	Event string `json:"event"`
	// Args describes the workload's arguments. Harnesses of older builders report one Tolerance for all of them.
	Args      []Arg   `json:"args"`
	Tolerance float64 `json:"tolerance"`
	// Kernels lists the ids of the loaded kernels, and Modules the indexes of their objects.
	Kernels []string `json:"kernels"`
	Modules []int    `json:"modules"`
	// Index is the index of the kernel, or -1 for the reference. For load it is the index of the object.
	Index      int       `json:"index"`
	Kernel     string    `json:"kernel"`
	Status     string    `json:"status"`
	Message    string    `json:"message"`
	Samples    []float64 `json:"samples"`
	RunSeconds float64   `json:"run_seconds"`
	// Growth is the multiple of the tolerance that the kernel's algorithm declares.
	Growth float64 `json:"growth"`
	// Seconds is the duration of the calibration kernel.
	Seconds float64 `json:"seconds"`
	// PatienceSeconds is the patience left after a calibration; negative if it was exceeded.
	PatienceSeconds float64 `json:"patience_seconds"`
}

const (
	maxEventBytes  = 64 << 10
	maxReportBytes = 16 << 20
)

// errGarbled means that a candidate found the descriptor of the report and wrote to it.
var errGarbled = errors.New("writes to the harness's report")

// eventReader reads the report of one harness process.
type eventReader struct {
	lines *bufio.Reader
	limit *io.LimitedReader
	// prefix is the prefix of each line that the harness writes.
	prefix []byte
}

func newEventReader(r io.Reader, word string) *eventReader {
	limit := &io.LimitedReader{R: r, N: maxReportBytes}
	return &eventReader{bufio.NewReaderSize(limit, maxEventBytes), limit, []byte(word)}
}

// next returns the next event, io.EOF at the end, errGarbled for anything else, and errors of the pipe unchanged.
func (r *eventReader) next() (event, error) {
	line, err := r.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull), errors.Is(err, io.EOF) && len(line) > 0:
		return event{}, errGarbled
	case err != nil:
		return event{}, err
	}
	line, genuine := bytes.CutPrefix(line, r.prefix)
	if !genuine {
		return event{}, errGarbled
	}
	var e event
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		return event{}, fmt.Errorf("%w: %w", errGarbled, err)
	}
	return e, nil
}
