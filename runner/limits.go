package runner

import (
	"cmp"
	"time"

	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/wire"
)

// Limits bound and shape the measurement of one candidate. Zero values mean the defaults.
type Limits struct {
	// Candidate is the least time a candidate gets, all included; by default 1 s, and 10 s while no latency is known:
	// a large task's first candidates may take seconds. Slow tasks get more: ten times what the best one needs.
	Candidate time.Duration
	// Reference bounds the reference kernel; 120 s by default.
	Reference time.Duration
	// Load is how long an object may take to be loaded, which may run code of it; 10 s by default.
	Load time.Duration
	// Compile is what a candidate gets besides, to be loaded and to be run, where the driver compiles it in the
	// harness; 20 s by default.
	Compile time.Duration
	// Sample is how long a timed sample lasts at least; by default 0.5 ms, and 1 ms of a finalist.
	Sample time.Duration
	// Budget bounds the time for a candidate's samples; by default 15 ms, and 150 ms of a finalist.
	Budget time.Duration
	// Samples is the most samples taken, at most 64; by default 10, and 40 of a finalist.
	Samples int
	// LeastSamples are taken of a candidate that seems to be no faster than the best, but not by much: 3 by default.
	// Of finalists they are taken even when the race is decided, and are 15, more than a search takes.
	LeastSamples int
	// Patience bounds how long a plan waits for a disturbed device to become calm; 250 ms by default. Afterwards it is
	// measured as it is, and the outcomes say so: a machine that is always busy must get through, too.
	Patience time.Duration
	// MemoryBytes bounds the harness's address space, with what an emulator maps; three quarters of the machine's
	// memory by default.
	MemoryBytes int64
}

const (
	defaultCandidate = time.Second
	defaultUnknown   = 10 * time.Second
	defaultReference = 120 * time.Second
	defaultSample    = 500 * time.Microsecond
	defaultBudget    = 15 * time.Millisecond
	defaultSamples   = 10
	defaultLeast     = 3
	defaultPatience  = 250 * time.Millisecond
	finalistSample   = time.Millisecond
	finalistBudget   = 150 * time.Millisecond
	finalistSamples  = 40
	finalistLeast    = 15
	// slowerAllowed times the incumbent's latency is what a candidate's single run may take. Verification runs it
	// twice.
	slowerAllowed = 10
	// spareThreads are those of an emulator, and of runners beside this one, whose harnesses may belong to the same
	// user.
	spareThreads  = 256
	mostOpenFiles = 256
	// mostResultsBytes bounds the reference's results.
	mostResultsBytes = 8 << 30
	defaultLoad      = 10 * time.Second
	defaultCompile   = 20 * time.Second
)

func (l Limits) withDefaults(bestSeconds float64, finalists bool) Limits {
	if bestSeconds == 0 {
		l.Candidate = cmp.Or(l.Candidate, defaultUnknown)
	}
	if finalists {
		l.Sample, l.Budget = cmp.Or(l.Sample, finalistSample), cmp.Or(l.Budget, finalistBudget)
		l.Samples, l.LeastSamples = cmp.Or(l.Samples, finalistSamples), cmp.Or(l.LeastSamples, finalistLeast)
	}
	l.Candidate, l.Reference = cmp.Or(l.Candidate, defaultCandidate), cmp.Or(l.Reference, defaultReference)
	l.Load, l.Compile = cmp.Or(l.Load, defaultLoad), cmp.Or(l.Compile, defaultCompile)
	l.Sample, l.Budget = cmp.Or(l.Sample, defaultSample), cmp.Or(l.Budget, defaultBudget)
	l.Samples, l.LeastSamples = cmp.Or(l.Samples, defaultSamples), cmp.Or(l.LeastSamples, defaultLeast)
	l.Patience = cmp.Or(l.Patience, defaultPatience)
	l.MemoryBytes = cmp.Or(l.MemoryBytes, sandbox.MachineMemory()/4*3)
	return l
}

// Limits of what is measured over a link, which takes longer to load a candidate than the board to run it.
const (
	// linkedCandidate is for sending and reading all that a board holds; the harness bounds what the candidate takes.
	linkedCandidate = 10 * time.Minute
	linkedBudget    = 2 * time.Second
	linkedSamples   = 4
	linkedLoad      = 60 * time.Second
)

// forLinks are limits for a device at the end of a link. It counts cycles, so that one execution is a sample.
func (l Limits) forLinks() Limits {
	l.Candidate, l.Load = cmp.Or(l.Candidate, linkedCandidate), cmp.Or(l.Load, linkedLoad)
	l.Sample, l.Budget = cmp.Or(l.Sample, time.Nanosecond), cmp.Or(l.Budget, linkedBudget)
	l.Samples, l.LeastSamples = cmp.Or(l.Samples, linkedSamples), cmp.Or(l.LeastSamples, linkedSamples-1)
	return l
}

// candidateLimit is the time a candidate gets from its start to its outcome; finalists share theirs, since they race
// together.
func (p Plan) candidateLimit() time.Duration {
	slow := time.Duration(2 * slowerAllowed * p.BestSeconds * float64(time.Second))
	own := max(p.Limits.Candidate, slow) + 2*p.Limits.Budget + p.compileLimit()
	if p.Meter != nil {
		own += 2 * p.Meter.Window()
	}
	if p.Finalists {
		own *= wire.MostFinalists
	}
	return own + p.Limits.Patience
}

// compileLimit is what the driver gets for compiling a candidate.
func (p Plan) compileLimit() time.Duration {
	if p.Device == nil || !p.Device.Compiles {
		return 0
	}
	return p.Limits.Compile
}

// processorTime bounds what a harness may use up if the runner, which watches the clock, can no longer end it.
func (p Plan) processorTime() time.Duration {
	kernels := max(len(p.Kernels), unknownKernels)
	return time.Duration(max(p.Threads, 1)) * (p.Limits.Reference + time.Duration(kernels)*p.candidateLimit())
}

// unknownKernels is for how many there is time when a plan does not say which it measures.
const unknownKernels = 64
