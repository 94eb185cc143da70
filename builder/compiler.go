package builder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Compiler compiles batches of candidates into shared objects.
type Compiler struct {
	Toolchain *toolchain.Toolchain
	Cache     *Cache
	// ObjectCache, if set, caches the objects of candidates built before.
	ObjectCache *ObjectCache
	// Parallel is the maximum number of concurrent compilers per batch; 0 means 1.
	Parallel int
	// CandidateTime is the time limit for compiling a single candidate; 0 means 5 s.
	CandidateTime time.Duration
	// OwnKernels allows hand-written kernels, whose assembly may embed any file that the compiler can read.
	OwnKernels bool
	// MemoryBytes limits the memory of each compiler; 0 means the toolchain's default.
	MemoryBytes uint64
}

const (
	defaultCandidateTime = 5 * time.Second
	// batchShare is the time that each further candidate in an object adds to its limit.
	batchShare = 500 * time.Millisecond
)

// Batch is a set of candidates of one workload to build.
type Batch struct {
	Workload   *expr.Workload
	Target     *target.Target
	Candidates []Candidate
}

// Candidate is a trace and its digest.
type Candidate struct {
	Digest string
	Trace  []byte
}

// Built is the result of a batch. The objects contain the candidates whose outcome has no error.
type Built struct {
	Outcomes []Outcome
	// Objects lists modules of candidates. There are several if compilers ran in parallel or a candidate was
	// isolated. Cached ones may contain other candidates as well.
	Objects []string
	// Reference and Harness are empty if there are no objects.
	Reference, Harness string
}

// Build compiles a batch into the folder dir. A bad candidate does not affect the others. It returns an error
// if the build side is at fault or ctx ended.
func (c *Compiler) Build(ctx context.Context, dir string, b Batch) (*Built, error) {
	begin := time.Now()
	by, err := registry.Of(b.Target)
	if err != nil {
		return nil, fmt.Errorf("builder: %w", err)
	}
	j := &job{compiler: c, backend: by, batch: b, dir: dir, slots: make(chan struct{}, max(c.Parallel, 1))}
	j.built.Outcomes = make([]Outcome, len(b.Candidates))
	err = j.run(ctx, j.print(j.reuse(j.replay())))
	share := time.Since(begin) / time.Duration(max(len(b.Candidates), 1))
	for k := range j.built.Outcomes {
		j.built.Outcomes[k].Build = share
	}
	if err != nil {
		return nil, err
	}
	return &j.built, nil
}

// limits returns the limits for compiling a module of candidates.
func (c *Compiler) limits(candidates int) toolchain.Limits {
	limit := cmp.Or(c.CandidateTime, defaultCandidateTime)
	limit += batchShare * time.Duration(candidates-1)
	return toolchain.Limits{Time: limit, MemoryBytes: c.MemoryBytes}
}

// Outcome is the result of building one candidate.
type Outcome struct {
	// Candidate is the digest of its trace.
	Candidate string
	// Error is NONE, BAD_SCHEDULE, COMPILE_ERROR or COMPILE_LIMIT.
	Error   tilthv1.ErrorClass
	Message string
	// Build is the candidate's share of the batch's build time.
	Build time.Duration
}

// classOf classifies the failure of a candidate that was compiled alone. It returns false if the candidate is
// not the cause.
func classOf(err error) (tilthv1.ErrorClass, bool) {
	var failure *toolchain.Error
	if !errors.As(err, &failure) {
		return 0, false
	}
	switch failure.Kind {
	case toolchain.Rejected:
		return tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR, true
	case toolchain.Limit:
		return tilthv1.ErrorClass_ERROR_CLASS_COMPILE_LIMIT, true
	default:
		return 0, false
	}
}
