package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/wire"
)

// process is one running harness.
type process struct {
	*sandbox.Process
	report *os.File
	// commands is the pipe for commands to the harness.
	commands *os.File
	events   *eventReader
	ended    atomic.Bool
	stop     func() bool
	// launcher is the command that starts the harness, if any. began is set once the harness has reported.
	launcher []string
	began    bool
}

// prefixBytes is the length of the secret prefix of each line of a report. The harness reads it from standard
// input, and candidates do not know it. Their own writes to the report are no valid events, unless they
// search the harness's memory.
const prefixBytes = 64

// secretPrefix returns an unpredictable word.
func secretPrefix() string {
	text := ""
	for len(text) < prefixBytes {
		text += rand.Text()
	}
	return text[:prefixBytes]
}

// start runs the harness in a sandbox with an empty environment. It is killed when ctx ends.
func (p Plan) start(ctx context.Context, command sandbox.Command, answers *os.File) (proc *process, err error) {
	err = target.RunOn(p.CPUs, func() error {
		proc, err = start(p.Sandbox, command, answers)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("starting the harness: %w", err)
	}
	proc.watch(ctx)
	return proc, nil
}

// watch aborts operations on the process when ctx ends.
func (p *process) watch(ctx context.Context) {
	p.stop = context.AfterFunc(ctx, func() {
		p.ended.Store(true)
		_ = p.report.SetReadDeadline(time.Unix(1, 0)) // fails only if the pipe is already closed
		_ = p.commands.SetWriteDeadline(time.Unix(1, 0))
	})
}

// answersDescriptor is the descriptor of the shared memory for outputs.
const answersDescriptor = 3

func start(box *sandbox.Sandbox, command sandbox.Command, answers *os.File) (_ *process, err error) {
	secret := secretPrefix()
	input, words, err := filled(secret)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	defer func() {
		if err != nil {
			_ = words.Close() // unread
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	command.Descriptors = append([]*os.File{input, write, null, answers}, command.Descriptors...)
	p, err := box.Start(command)
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	return &process{Process: p, report: read, commands: words, events: newEventReader(read, secret), launcher: command.Launcher}, nil
}

// filled returns a pipe that contains a text, which must fit into a pipe's buffer.
func filled(text string) (read, write *os.File, err error) {
	if read, write, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if _, err = io.WriteString(write, text); err != nil {
		return nil, nil, errors.Join(err, read.Close(), write.Close())
	}
	return read, write, nil
}

// next waits for an event. It returns os.ErrDeadlineExceeded if none arrives within the limit or ctx has ended.
func (p *process) next(limit time.Duration) (event, error) {
	if err := p.report.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return event{}, fmt.Errorf("reading the harness's report: %w", err)
	}
	if p.ended.Load() { // checked after setting the deadline, so that no end is missed
		return event{}, os.ErrDeadlineExceeded
	}
	e, err := p.events.next()
	if errors.Is(err, io.EOF) && !p.began && len(p.launcher) > 0 {
		err = fmt.Errorf("%w (it did not begin under %s, which may lack rights that --sandbox off leaves it)", err, strings.Join(p.launcher, " "))
	}
	p.began = p.began || err == nil
	return e, err
}

// How a process ended that was still running when its report ended: killed, or by itself, unable to report.
const (
	endedKilled = "ended by killed"
	endedMute   = "exits with status 2"
)

// kill ends the process with all its descendants. It returns how the process had failed before, or "" if it
// was running or had exited successfully.
func (p *process) kill() string {
	p.stop()
	state, exhausted, err := p.End()
	p.report.Close()
	p.commands.Close()
	if exhausted {
		return "uses up its memory"
	}
	if err != nil {
		return err.Error()
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok || state.Success():
		return ""
	case status.Signaled():
		return "ended by " + status.Signal().String()
	default:
		return fmt.Sprintf("exits with status %d", status.ExitStatus())
	}
}

// Limits configures the measurement of a candidate. Zero values mean the defaults.
type Limits struct {
	// Candidate is the minimum time limit of a candidate, all included; by default 1 s, or 10 s while no
	// latency is known, because the first candidates of a large task may take seconds. Slow tasks get ten
	// times the time of the best candidate.
	Candidate time.Duration
	// Reference is the time limit of the reference kernel; by default 120 s.
	Reference time.Duration
	// Load is the time limit for loading an object, which may run its code; by default 10 s.
	Load time.Duration
	// Compile is the additional time for a candidate that the driver compiles in the harness; by default 20 s.
	Compile time.Duration
	// Sample is the minimum duration of a timed sample; by default 0.5 ms, or 1 ms for finalists.
	Sample time.Duration
	// Budget limits the time for a candidate's samples; by default 15 ms, or 150 ms for finalists.
	Budget time.Duration
	// Samples is the maximum number of samples, up to 64; by default 10, or 40 for finalists.
	Samples int
	// MinSamples is the number of samples of a candidate that seems slightly slower than the best, by
	// default 3. Finalists get at least 15, more than a search takes, even if the race is decided.
	MinSamples int
	// Patience limits how long a plan waits for a disturbed device to become calm; by default 250 ms. Afterwards the
	// device is measured as it is, and the outcomes report that, so that permanently busy machines make progress.
	Patience time.Duration
	// MemoryBytes limits the harness's address space, including the mappings of an emulator; by default three
	// quarters of the machine's memory.
	MemoryBytes int64
	// exams limits the time for the outputs of examination sets beyond the fewest; by default maxExamTime.
	exams time.Duration
	// group is the number of sets that run together; by default their time determines it.
	group int
}

const (
	defaultCandidate = time.Second
	defaultUnknown   = 10 * time.Second
	defaultReference = 120 * time.Second
	defaultSample    = 500 * time.Microsecond
	defaultBudget    = 15 * time.Millisecond
	defaultSamples   = 10
	defaultMin       = 3
	defaultPatience  = 250 * time.Millisecond
	finalistSample   = time.Millisecond
	finalistBudget   = 150 * time.Millisecond
	finalistSamples  = 40
	finalistMin      = 15
	// maxSlowdown is the maximum time of a candidate's single run relative to the incumbent. Verification
	// runs it twice.
	maxSlowdown = 10
	// spareThreads is the allowance for the threads of an emulator and of other runners whose harnesses
	// belong to the same user.
	spareThreads = 256
	maxOpenFiles = 256
	// maxResultsBytes limits the reference's results.
	maxResultsBytes = 8 << 30
	defaultLoad     = 10 * time.Second
	defaultCompile  = 20 * time.Second
)

func (l Limits) withDefaults(bestSeconds float64, finalists bool) Limits {
	if bestSeconds == 0 {
		l.Candidate = cmp.Or(l.Candidate, defaultUnknown)
	}
	if finalists {
		l.Sample, l.Budget = cmp.Or(l.Sample, finalistSample), cmp.Or(l.Budget, finalistBudget)
		l.Samples, l.MinSamples = cmp.Or(l.Samples, finalistSamples), cmp.Or(l.MinSamples, finalistMin)
	}
	l.Candidate, l.Reference = cmp.Or(l.Candidate, defaultCandidate), cmp.Or(l.Reference, defaultReference)
	l.Load, l.Compile = cmp.Or(l.Load, defaultLoad), cmp.Or(l.Compile, defaultCompile)
	l.Sample, l.Budget = cmp.Or(l.Sample, defaultSample), cmp.Or(l.Budget, defaultBudget)
	l.Samples, l.MinSamples = cmp.Or(l.Samples, defaultSamples), cmp.Or(l.MinSamples, defaultMin)
	l.Patience = cmp.Or(l.Patience, defaultPatience)
	l.MemoryBytes = cmp.Or(l.MemoryBytes, sandbox.MachineMemory()/4*3)
	return l
}

// Limits for linked devices, where loading a candidate takes longer than running it.
const (
	// linkedCandidate covers sending and reading everything that fits on a board; the harness limits the
	// candidate's own time.
	linkedCandidate = 10 * time.Minute
	linkedBudget    = 2 * time.Second
	linkedSamples   = 4
	linkedLoad      = 60 * time.Second
)

// forLinks returns the limits for a linked device. It counts cycles, so one execution is a sample.
func (l Limits) forLinks() Limits {
	l.Candidate, l.Load = cmp.Or(l.Candidate, linkedCandidate), cmp.Or(l.Load, linkedLoad)
	l.Sample, l.Budget = cmp.Or(l.Sample, time.Nanosecond), cmp.Or(l.Budget, linkedBudget)
	l.Samples, l.MinSamples = cmp.Or(l.Samples, linkedSamples), cmp.Or(l.MinSamples, linkedSamples-1)
	return l
}

// candidateLimit returns the time limit of a candidate from its start to its outcome. Finalists share theirs,
// because they race together.
func (p Plan) candidateLimit() time.Duration {
	slow := time.Duration(2 * maxSlowdown * p.BestSeconds * float64(time.Second))
	own := max(p.Limits.Candidate, slow) + 2*p.Limits.Budget + p.compileLimit()
	if p.Meter != nil {
		own += 2 * p.Meter.Window()
	}
	if p.Finalists {
		own *= wire.MaxFinalists
	}
	return own + p.Limits.Patience
}

// compileLimit returns the driver's time limit for compiling a candidate.
func (p Plan) compileLimit() time.Duration {
	if p.Device == nil || !p.Device.Compiles {
		return 0
	}
	return p.Limits.Compile
}

// processorTime limits the CPU time of a harness in case the runner can no longer stop it.
func (p Plan) processorTime() time.Duration {
	kernels := max(len(p.Kernels), unknownKernels)
	return time.Duration(max(p.Threads, 1)) * (p.Limits.Reference + time.Duration(kernels)*p.candidateLimit())
}

// unknownKernels is the assumed number of kernels if a plan does not list them.
const unknownKernels = 64
