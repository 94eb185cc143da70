package builder

import (
	"context"
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Compiler turns batches of candidates into shared objects.
type Compiler struct {
	Toolchain *toolchain.Toolchain
	Cache     *Cache
	// Kept has the objects of candidates built before; nil = none.
	Kept *Kept
	// Parallel is how many compilers a batch may run at once; 0 means 1.
	Parallel int
	// CandidateTime is how long compiling a single candidate may take; 5 s by default.
	CandidateTime time.Duration
	// OwnKernels has kernels built that somebody wrote: their assembly may embed any file that the compiler can read.
	OwnKernels bool
	// MemoryBytes bounds each compiler's memory; 0 means the toolchain's default.
	MemoryBytes uint64
}

const (
	defaultCandidateTime = 5 * time.Second
	// batchShare is what every further candidate in an object adds to its time limit.
	batchShare = 500 * time.Millisecond
)

// Batch is what to build: candidates of one workload.
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

// Built is what a batch was built into. The objects hold the candidates whose outcome has no error.
type Built struct {
	Outcomes []Outcome
	// Objects are modules of candidates. There are several when compilers ran side by side or a candidate was
	// isolated. Those kept from earlier batches may have other candidates as well.
	Objects []string
	// Reference and Harness are empty when there are no objects.
	Reference, Harness string
}

// Build compiles a batch into the folder dir. A bad candidate costs only itself. The error means that the build side
// is at fault or ctx ended.
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

// limits bound compiling a module of so many candidates.
func (c *Compiler) limits(candidates int) toolchain.Limits {
	limit := c.CandidateTime
	if limit == 0 {
		limit = defaultCandidateTime
	}
	limit += batchShare * time.Duration(candidates-1)
	return toolchain.Limits{Time: limit, MemoryBytes: c.MemoryBytes}
}
