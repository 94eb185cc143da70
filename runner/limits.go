package runner

import (
	"cmp"
	"time"

	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/wire"
)

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
