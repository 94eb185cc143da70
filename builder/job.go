package builder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent"
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
	limit := cmp.Or(c.CandidateTime, defaultCandidateTime) + batchShare*time.Duration(candidates-1)
	return toolchain.Limits{Time: limit, MemoryBytes: c.MemoryBytes}
}

// Outcome is the result of building one candidate.
type Outcome struct {
	// Candidate is the digest of its trace.
	Candidate string
	// Error is ERROR_CLASS_NONE, or the class of the failure: BAD_SCHEDULE, COMPILE_ERROR or COMPILE_LIMIT.
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
	}
	return 0, false
}

// job is a batch being built.
type job struct {
	compiler *Compiler
	backend  backend.Backend
	batch    Batch
	dir      string
	slots    chan struct{}
	mu       sync.Mutex // guards built
	built    Built
}

// module returns the build of a group of candidates. Linking has the same limits as compiling.
func (j *job) module(kernels []printed) (b toolchain.Build, err error) {
	defer schedule.RecoverAs(&err)
	list := make([]backend.Printed, len(kernels))
	for k := range kernels {
		list[k] = kernels[k].Printed
	}
	b, err = j.backend.Module(j.batch.Workload, list, j.batch.Target)
	b.Limits = j.compiler.limits(len(kernels))
	return b, err
}

func (j *job) fail(k int, class tilthv1.ErrorClass, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.built.Outcomes[k].Error, j.built.Outcomes[k].Message = class, agent.FailureMessage(err.Error())
}

// run compiles the candidates, the reference and the harness in parallel.
func (j *job) run(ctx context.Context, kernels []printed) error {
	if len(kernels) == 0 && len(j.built.Objects) == 0 {
		return nil
	}
	all, within := errgroup.WithContext(ctx)
	all.Go(func() error { return j.reference(within) })
	all.Go(func() error { return j.harness(within) })
	for _, group := range modules(kernels, max(j.compiler.Parallel, 1)) {
		all.Go(func() error { return j.object(within, group) })
	}
	err := all.Wait()
	if len(j.built.Objects) == 0 {
		j.built.Reference, j.built.Harness = "", ""
	}
	return cmp.Or(context.Cause(ctx), err)
}

// object compiles a group of candidates into one module. If that fails, it bisects the group to isolate the
// failing candidates.
func (j *job) object(ctx context.Context, group []printed) error {
	path, class, err := j.compile(ctx, group)
	switch {
	case err == nil:
		j.mu.Lock()
		defer j.mu.Unlock()
		j.built.Objects = append(j.built.Objects, path)
		keys := make([]string, len(group))
		for k := range group {
			keys[k] = j.batch.key(group[k].id)
		}
		j.compiler.ObjectCache.add(path, keys)
		return nil
	case class == 0:
		return err
	case len(group) == 1:
		j.fail(group[0].index, class, err)
		return nil
	}
	for _, half := range split(group, 2) {
		if err := j.object(ctx, half); err != nil {
			return err
		}
	}
	return nil
}

// compile compiles one module. The class is zero if the candidates are not the cause of the error.
func (j *job) compile(ctx context.Context, group []printed) (string, tilthv1.ErrorClass, error) {
	module, err := j.module(group)
	if err != nil {
		return "", tilthv1.ErrorClass_ERROR_CLASS_BAD_SCHEDULE, err
	}
	path := filepath.Join(j.dir, fmt.Sprintf("candidates-%d-%d.so", group[0].index, len(group)))
	err = j.build(ctx, module, path)
	if err == nil {
		return path, 0, nil
	}
	class, _ := classOf(err)
	return "", class, err
}

// build compiles once a slot is free.
func (j *job) build(ctx context.Context, b toolchain.Build, path string) error {
	select {
	case j.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("builder: %w", context.Cause(ctx))
	}
	defer func() { <-j.slots }()
	return j.compiler.Toolchain.Build(ctx, b, path)
}

func (j *job) reference(ctx context.Context) error {
	b, err := j.referenceBuild()
	if err != nil {
		return fmt.Errorf("builder: the reference: %w", err)
	}
	j.built.Reference, err = j.compiler.Cache.Get(ctx, j.compiler.Toolchain, b)
	return err
}

func (j *job) referenceBuild() (b toolchain.Build, err error) {
	defer schedule.RecoverAs(&err)
	return j.backend.Reference(j.batch.Workload, j.batch.Target)
}

func (j *job) harness(ctx context.Context) (err error) {
	j.built.Harness, err = j.compiler.Cache.Get(ctx, j.compiler.Toolchain, j.backend.Harness(j.batch.Target))
	return err
}

// replayed is a candidate with its replayed schedule.
type replayed struct {
	index int
	backend.Kernel
}

// printed is a candidate with its code.
type printed struct {
	index int
	id    string
	// own is the digest of a hand-written kernel; empty for a schedule.
	own string
	backend.Printed
}

// each calls work for the numbers below n, with as many calls in parallel as compilers may run, and returns
// the numbers without an error. An error becomes the outcome of the candidate at index(number).
func (j *job) each(n int, index func(int) int, work func(int) error) (right []int) {
	errs := make([]error, n)
	var all errgroup.Group
	all.SetLimit(max(j.compiler.Parallel, 1))
	for k := range n {
		all.Go(func() error {
			errs[k] = work(k)
			return nil
		})
	}
	_ = all.Wait() // the errors are those of candidates
	for k, err := range errs {
		if err == nil {
			right = append(right, k)
		} else {
			j.fail(index(k), tilthv1.ErrorClass_ERROR_CLASS_BAD_SCHEDULE, err)
		}
	}
	return right
}

// replay replays the traces and returns the legal candidates. It sets the outcomes of the others. Candidates
// with the same constant layouts are adjacent, because a module and its measurement share them.
func (j *job) replay() []replayed {
	candidates := j.batch.Candidates
	schedules := make([]*schedule.Schedule, len(candidates))
	for k, c := range candidates {
		j.built.Outcomes[k] = Outcome{Candidate: c.Digest, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE}
	}
	right := j.each(len(candidates), func(k int) int { return k }, func(k int) (err error) {
		schedules[k], err = j.schedule(candidates[k])
		return err
	})
	var kernels []replayed
	for _, k := range right {
		kernels = append(kernels, replayed{k, backend.Kernel{ID: candidates[k].Digest, Schedule: schedules[k]}})
	}
	return byLayout(kernels)
}

// print prints candidates and returns those that lower to loops. It sets the outcomes of the others.
func (j *job) print(kernels []replayed) []printed {
	all := make([]printed, len(kernels))
	right := j.each(len(kernels), func(k int) int { return kernels[k].index }, func(k int) error {
		p, err := j.printed(kernels[k])
		all[k] = printed{kernels[k].index, kernels[k].ID, ownDigest(kernels[k].Schedule), p}
		return err
	})
	for i, k := range right {
		all[i] = all[k]
	}
	return all[:len(right)]
}

func ownDigest(s *schedule.Schedule) string {
	if s.Own == nil {
		return ""
	}
	return s.Own.Kernel.Digest()
}

// printed returns the code of a candidate. It recovers from panics, so that bugs do not crash the agent.
func (j *job) printed(k replayed) (p backend.Printed, err error) {
	defer schedule.RecoverAs(&err)
	return j.backend.Print(fmt.Sprintf("k%d", k.index), k.Kernel, j.batch.Target)
}

// byLayout groups candidates by the layouts of constants, in the order of first occurrence.
func byLayout(kernels []replayed) []replayed {
	groups, first := map[string]int{}, map[int]int{}
	for k, kernel := range kernels {
		layouts := kernel.Schedule.Layouts()
		if _, known := groups[layouts]; !known {
			groups[layouts] = k
		}
		first[kernel.index] = groups[layouts]
	}
	slices.SortStableFunc(kernels, func(a, b replayed) int { return first[a.index] - first[b.index] })
	return kernels
}

// schedule replays the trace of a candidate.
func (j *job) schedule(candidate Candidate) (s *schedule.Schedule, err error) {
	defer schedule.RecoverAs(&err)
	if got := schedule.Digest(candidate.Trace); got != candidate.Digest {
		return nil, fmt.Errorf("the trace has digest %s, not %s", got, candidate.Digest)
	}
	s, err = schedule.Replay(j.batch.Workload, candidate.Trace)
	if err == nil && s.Own != nil && !j.compiler.OwnKernels {
		return nil, fmt.Errorf("%s: this builder compiles none: start it with --own-kernels", s.Own.Kernel.Label())
	}
	return s, err
}

// modules groups candidates that are compiled together: up to n schedules, or up to n variants of one
// hand-written kernel, whose constructors, for example, must not run beside other candidates.
func modules(list []printed, n int) (groups [][]printed) {
	var order []string
	kinds := map[string][]printed{}
	for _, p := range list {
		if kinds[p.own] == nil {
			order = append(order, p.own)
		}
		kinds[p.own] = append(kinds[p.own], p)
	}
	for _, own := range order {
		groups = append(groups, split(kinds[own], n)...)
	}
	return groups
}

// split divides a list into at most n non-empty parts with about equal compile times.
func split(list []printed, n int) (parts [][]printed) {
	if len(list) == 0 {
		return nil
	}
	total, before, first := 0, 0, 0
	for _, p := range list {
		total += p.Size()
	}
	n = min(n, len(list))
	for k, p := range list {
		before += p.Size()
		left, wanted := len(list)-k-1, n-len(parts)-1
		// Split where the next candidate would overshoot the target by more than the current one undershoots it.
		place, next := total*(len(parts)+1)/n, 0
		if left > 0 {
			next = list[k+1].Size()
		}
		if wanted > 0 && (left == wanted || 2*before+next >= 2*place) {
			parts, first = append(parts, list[first:k+1]), k+1
		}
	}
	return append(parts, list[first:])
}
