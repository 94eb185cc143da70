package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// rehearsals is the number of groups without the kernel that must take about the same time, as far as
	// possible.
	rehearsals     = 4
	longRehearsals = 250 * time.Millisecond
	// examinations is how often a kernel is examined before its process's clock is distrusted. The pauses in
	// between double, so that a disturbance on a busy machine ends within one or two attempts.
	examinations = 6
	firstPause   = 5 * time.Millisecond
	// maxClockRatio is the maximum ratio of the runner's time to the process's time. Part of the ratio is
	// legitimate: outside of its samples a kernel finds its inputs in different caches.
	maxClockRatio = 3
	// rehearsalMargin is the additional share of a rehearsal that is subtracted, because it leaves the caches in a
	// different state than samples do.
	rehearsalMargin = 0.5
)

// examineBest examines the cheapest unreported candidate for as long as it would become the best.
func (m *measurement) examineBest(ctx context.Context) error {
	if m.plan.Alike {
		return nil // the best candidate is not requested
	}
	best := cmp.Or(m.best, m.plan.BestSeconds)
	switch {
	case m.plan.Finalists:
		best = 0 // the best so far races with the others
	case m.plan.Meter != nil:
		best = m.best // seconds are not joules
	}
	examined := map[int]bool{}
	for {
		k := m.cheapest()
		if k < 0 || examined[k] || best > 0 && cost(m.outcomes[k]) >= best {
			return nil
		}
		examined[k] = true
		if err := m.examine(ctx, k); err != nil {
			return err
		}
		if o := m.outcomes[k]; o.Error == tilthv1.ErrorClass_ERROR_CLASS_NONE {
			m.best = cost(o)
		}
	}
}

// cost returns the quantity to minimize: joules if there is a meter, otherwise seconds.
func cost(o *Outcome) float64 { return cmp.Or(o.EnergyJoules, median(o)) }

func median(o *Outcome) float64 { return stats.Of(o.Samples).Median }

// cheapest returns the index of the unreported candidate with the lowest cost, or -1.
func (m *measurement) cheapest() int {
	best := -1
	for k, o := range m.outcomes {
		if o == nil || m.reported[k] || o.Error != tilthv1.ErrorClass_ERROR_CLASS_NONE {
			continue
		}
		if best < 0 || cost(o) < cost(m.outcomes[best]) {
			best = k
		}
	}
	return best
}

// examine runs a candidate in a separate process, timed by the runner's clock, on data that no candidate has
// seen. A wrong result fails the candidate. A much longer time replaces the candidate's own.
func (m *measurement) examine(ctx context.Context, k int) error {
	o := m.outcomes[k]
	claimed, seconds := median(o), 0.0
	for n := range examinations {
		took, failed, err := m.exam(ctx, k)
		if err != nil {
			return err
		}
		if failed != nil {
			failed.Kernel, failed.RunSeconds = o.Kernel, o.RunSeconds
			m.outcomes[k] = failed
			return nil
		}
		if m.plan.linked() { // candidates cannot manipulate a board's counter
			return nil
		}
		if n == 0 || took < seconds {
			seconds = took
		}
		if seconds <= maxClockRatio*claimed {
			return nil
		}
		if err := pause(ctx, firstPause<<n); err != nil {
			return err
		}
	}
	o.Samples = []float64{seconds}
	o.EnergyJoules *= seconds / claimed
	o.Remeasured = fmt.Sprintf("its own process's clock says %.3g µs, the runner's %.3g µs", 1e6*claimed, 1e6*seconds)
	return nil
}

// exam examines a candidate, again if the device was lost meanwhile.
func (m *measurement) exam(ctx context.Context, k int) (seconds float64, failed *Outcome, err error) {
	for range maxLosses + 1 {
		x := &exam{plan: m.plan.only(m.kernels[k], m.modules[k]), results: m.results}
		seconds, failed, err = x.run(ctx)
		if !errors.As(err, new(*lostError)) {
			break
		}
	}
	return seconds, failed, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("measuring: %w", context.Cause(ctx))
	}
}

// only returns a plan for one of the kernels.
func (p Plan) only(kernel string, module int) Plan {
	p.Kernels, p.Candidates = []string{kernel}, p.Candidates[module:module+1]
	return p
}

// exam is one examination.
type exam struct {
	plan    Plan
	results *results
	judge   *judge
	// begun is set once loading of the candidate's object started, which makes the candidate responsible for
	// failures.
	begun bool
	// outputs holds a copy of a group's outputs, so that later writes of the process do not count.
	outputs []byte
}

// run returns the lower bound of the candidate's time, or its failure. An error means that the device is at
// fault or ctx ended.
func (x *exam) run(ctx context.Context) (seconds float64, failed *Outcome, err error) {
	x.outputs = make([]byte, x.results.SlotBytes()*int64(x.results.Group))
	args := append(x.plan.common(), "--examine", "1", "--kernel", x.plan.Kernels[0], x.plan.Reference, x.plan.Candidates[0])
	w, judge, err := x.plan.worker(ctx, x.results, x.results.Exams, x.plan.sandboxed(args))
	if err != nil {
		return 0, nil, err
	}
	x.judge = judge
	seconds, wrong, err := x.follow(w.process)
	well := err == nil && wrong == "" && w.pool != nil && w.run(command{op: cmdEnough}, becomeReady) == nil
	ending := w.release(ctx, well)
	switch {
	case ctx.Err() != nil:
		return 0, nil, fmt.Errorf("measuring: %w", context.Cause(ctx))
	case err != nil && x.plan.linked() && !blamed(err) && !errors.As(err, new(*infraError)):
		return 0, nil, x.plan.lost(err, ending)
	case err != nil && !x.begun:
		return 0, nil, fmt.Errorf("harness: examining a candidate: %w %s", err, ending)
	case err != nil:
		o := x.plan.failure(err, ending)
		return 0, &o, nil
	case wrong != "":
		return 0, &Outcome{Error: tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT, Message: "on other data: " + wrong}, nil
	}
	return seconds, nil, nil
}

// follow rehearses, loads and runs. wrong describes a wrong result, or is empty.
func (x *exam) follow(proc *process) (seconds float64, wrong string, err error) {
	limit := x.plan.Limits.Reference
	if err := x.judge.begin(proc, limit); err != nil {
		return 0, "", err
	}
	rehearsed, err := x.rehearse(proc)
	if err != nil {
		return 0, "", err
	}
	x.begun = true
	if err := x.load(proc); err != nil {
		return 0, "", err
	}
	if v := x.judge.verdicts[0]; v.wrong != "" {
		return 0, v.wrong, nil
	}
	took, wrong, err := x.time(proc)
	if err != nil {
		return 0, "", err
	}
	if wrong != "" {
		return 0, wrong, nil
	}
	return max(0, took.Seconds()-(1+rehearsalMargin)*rehearsed.Seconds()) / float64(x.results.Group), "", nil
}

// time runs the kernel on all sets, group by group, and returns the shortest time of a group, or a wrong
// result. Each group is verified before the next starts; otherwise a process could deliver one group during
// another and appear to take no time.
func (x *exam) time(proc *process) (shortest time.Duration, wrong string, err error) {
	limit := x.plan.candidateLimit() + x.plan.Limits.Reference
	for k := 0; k < x.results.Exams; k += x.results.Group {
		w := command{op: cmdRunSets, seed: x.results.seed(practiceSets + k), slot: uint64(k), n: uint64(x.results.Group)}
		took, err := x.group(proc, w, limit)
		if err != nil {
			return 0, "", err
		}
		if wrong := x.wrong(k); wrong != "" {
			return 0, wrong, nil
		}
		if k == 0 || took < shortest {
			shortest = took
		}
	}
	return shortest, "", nil
}

// group returns the time from starting a group until its outputs are out of the process's reach.
func (x *exam) group(proc *process, w command, limit time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := proc.run(w, limit); err != nil {
		return 0, err
	}
	for k := range x.results.Group {
		copy(x.output(k), x.judge.memory.Slot(int(w.slot)+k, x.results.SlotBytes()))
	}
	return time.Since(began), nil
}

// output returns the copied output of the last group on its k-th set.
func (x *exam) output(k int) []byte {
	size := int(x.results.SlotBytes())
	return x.outputs[k*size : (k+1)*size]
}

// wrong verifies the outputs of the group that starts with a set, and describes an error.
func (x *exam) wrong(first int) string {
	for k := range x.results.Group {
		want := x.results.set(practiceSets + first + k)
		if _, message := x.results.Judge(x.output(k), want, x.judge.verdicts[0].growth); message != "" {
			return message
		}
	}
	return ""
}

// load makes the process load the candidate and run it once, and verifies the result.
func (x *exam) load(proc *process) error {
	if err := proc.send(command{op: cmdLoad, seed: x.judge.seed()}); err != nil {
		return err
	}
	limit := x.plan.Limits.Load
	for {
		e, err := proc.next(limit)
		if err != nil {
			return err
		}
		switch {
		case e.Event == "load" && e.Index == 0, e.Event == "module" && len(e.Kernels) > 0:
		case e.Event == "start" && e.Index == 0:
			limit = x.plan.candidateLimit()
		case e.Event == "ran" && e.Index == 0:
			return x.judge.verify(proc, e)
		case e.Event == "lost":
			return e.lost()
		case e.Event == "timeout":
			return &overdueError{e.Message}
		case e.Event == "fault", e.Event == "error", e.Event == "outcome":
			return &faultError{cmp.Or(e.Message, "runs otherwise by itself")}
		default:
			return errGarbled
		}
	}
}

// rehearse returns the shortest time of a group without the kernel. It uses different data, so that the
// measured ones are not cached. On a busy machine it repeats until the minimum is reliable.
func (x *exam) rehearse(proc *process) (time.Duration, error) {
	var took []time.Duration
	for start := time.Now(); !settled(took, time.Since(start)); slices.Sort(took) {
		w := command{op: cmdFillSets, seed: rand.Uint64(), n: uint64(x.results.Group)}
		one, err := x.group(proc, w, x.plan.Limits.Reference)
		if err != nil {
			return 0, err
		}
		took = append(took, one)
	}
	return took[0], nil
}

// settled reports whether the samples suffice to know the minimum.
func settled(sorted []time.Duration, since time.Duration) bool {
	n := len(sorted)
	return n >= rehearsals && (sorted[rehearsals-1]-sorted[0] < sorted[0]/10 || since > longRehearsals)
}
