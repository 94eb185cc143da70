package builder

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/schedule"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
	var next atomic.Int64
	var wait sync.WaitGroup
	for range max(j.compiler.Parallel, 1) {
		wait.Go(func() {
			for k := int(next.Add(1)) - 1; k < n; k = int(next.Add(1)) - 1 {
				errs[k] = work(k)
			}
		})
	}
	wait.Wait()
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
