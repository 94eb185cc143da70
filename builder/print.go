package builder

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/trap"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// replayed is a candidate whose trace was replayed.
type replayed struct {
	index int
	backend.Kernel
}

// printed is a candidate that has code.
type printed struct {
	index int
	id    string
	// own is the digest of the kernel that somebody wrote; empty for a schedule.
	own string
	backend.Printed
}

// each calls work with the numbers below n, as many at once as compilers may run, and returns those for which there
// was no error. An error is the candidate's, whose index in the batch index tells.
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

// replay replays the traces and returns the candidates whose traces are legal; the others' outcomes are set. Those
// that lay their constants out alike are next to one another, since a module and its measurement share what they have
// in common.
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

// print prints candidates and returns those that lower to loops; the others' outcomes are set.
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

// printed is the code of a candidate. The compiler's own bugs must not take the agent down with them.
func (j *job) printed(k replayed) (p backend.Printed, err error) {
	defer trap.AsError(&err)
	return j.backend.Print(fmt.Sprintf("k%d", k.index), k.Kernel, j.batch.Target)
}

// byLayout groups a list by the layouts of constants, in the order in which they first occur.
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
	defer trap.AsError(&err)
	if got := schedule.Digest(candidate.Trace); got != candidate.Digest {
		return nil, fmt.Errorf("the trace has digest %s, not %s", got, candidate.Digest)
	}
	s, err = schedule.Replay(j.batch.Workload, candidate.Trace)
	if err == nil && s.Own != nil && !j.compiler.OwnKernels {
		return nil, fmt.Errorf("%s: this builder compiles none: start it with --own-kernels", s.Own.Kernel.Label())
	}
	return s, err
}

// modules are groups of candidates that are compiled together: up to n of schedules, and up to n of each kernel that
// somebody wrote, whose constructors, say, would run beside other candidates otherwise.
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

// split cuts a list into at most n parts, none of them empty, that take a compiler about as long each.
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
		// The cut is where the next candidate would be further beyond its place than this one is short of it.
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
