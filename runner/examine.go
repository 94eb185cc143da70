package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/internal/stat"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// rehearsals are how many groups a process goes through without running the kernel until so many took about as
	// long; in the end any.
	rehearsals     = 4
	longRehearsals = 250 * time.Millisecond
	// examinations are how often a kernel is examined before its process's clock is not believed. The pauses between
	// them double: what lengthens one on a busy machine is over by the next, or the one after that.
	examinations = 6
	firstPause   = 5 * time.Millisecond
	// believable is how many times its process's time a kernel may take by the runner's clock. Some of it is honest:
	// outside of its samples a kernel finds its inputs in other caches.
	believable = 3
	// leeway is the part of a rehearsal that is not counted either, since the caches that it leaves are not those of
	// samples.
	leeway = 0.5
)

// examineBest examines the cheapest of the candidates that wait to be reported, while that would become the best.
func (m *measurement) examineBest(ctx context.Context) error {
	if m.plan.Alike {
		return nil // nobody asks which is the best
	}
	best := cmp.Or(m.best, m.plan.BestSeconds)
	switch {
	case m.plan.Finalists:
		best = 0 // the best so far races with the others
	case m.plan.Meter != nil:
		best = m.best // seconds are no joules
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

// cost is what is to be low of a candidate: joules where a meter is read, else seconds.
func cost(o *Outcome) float64 { return cmp.Or(o.EnergyJoules, median(o)) }

func median(o *Outcome) float64 { return stat.Of(o.Samples).Median }

// cheapest is the candidate with the least cost of those that wait to be reported; -1 when there is none.
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

// examine runs a candidate in a process of its own, by the runner's clock, on data that no candidate has seen. One
// that is wrong there has failed; one that takes much longer there takes as long as that.
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
		if m.plan.linked() { // a board's counter is out of its candidates' reach
			return nil
		}
		if n == 0 || took < seconds {
			seconds = took
		}
		if seconds <= believable*claimed {
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

// exam examines a candidate once: again where the device was lost meanwhile.
func (m *measurement) exam(ctx context.Context, k int) (seconds float64, failed *Outcome, err error) {
	for range mostLosses + 1 {
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

// only is a plan for one of the kernels.
func (p Plan) only(kernel string, module int) Plan {
	p.Kernels, p.Candidates = []string{kernel}, p.Candidates[module:module+1]
	return p
}

// exam is one examination.
type exam struct {
	plan    Plan
	results *results
	judge   *judge
	// begun says that the candidate's object is, or was, loaded: what happens from then on is its doing.
	begun bool
	// outputs are copies of a group's: what the process writes later does not count.
	outputs []byte
}

// run returns how long an execution takes at least, or how the candidate fails. The error means that the device is at
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
	well := err == nil && wrong == "" && w.pool != nil && w.run(word{op: enough}, becomeReady) == nil
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

// follow rehearses, loads and runs. wrong says what was wrong; empty = nothing.
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
	return max(0, took.Seconds()-(1+leeway)*rehearsed.Seconds()) / float64(x.results.Group), "", nil
}

// time has the process run the kernel on all sets, group by group, and returns what a group takes at least, or what
// is wrong. Each group is judged before the next: a process that could hand a group in late, in the time of another,
// would have one that takes no time.
func (x *exam) time(proc *process) (least time.Duration, wrong string, err error) {
	limit := x.plan.candidateLimit() + x.plan.Limits.Reference
	for k := 0; k < x.results.Exams; k += x.results.Group {
		w := word{op: runSets, seed: x.results.seed(practiceSets + k), slot: uint64(k), n: uint64(x.results.Group)}
		took, err := x.group(proc, w, limit)
		if err != nil {
			return 0, "", err
		}
		if wrong := x.wrong(k); wrong != "" {
			return 0, wrong, nil
		}
		if k == 0 || took < least {
			least = took
		}
	}
	return least, "", nil
}

// group returns how long the process takes for a group until its outputs are out of its reach.
func (x *exam) group(proc *process, w word, limit time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := proc.run(w, limit); err != nil {
		return 0, err
	}
	for k := range x.results.Group {
		copy(x.output(k), x.judge.memory.Slot(int(w.slot)+k, x.results.SlotBytes()))
	}
	return time.Since(began), nil
}

// output is the copy of what the last group put out on its k-th set.
func (x *exam) output(k int) []byte {
	size := int(x.results.SlotBytes())
	return x.outputs[k*size : (k+1)*size]
}

// wrong says what is wrong with the outputs of the group that begins with an examination's set; empty = nothing.
func (x *exam) wrong(first int) string {
	for k := range x.results.Group {
		want := x.results.set(practiceSets + first + k)
		if _, message := x.results.Judge(x.output(k), want, x.judge.verdicts[0].growth); message != "" {
			return message
		}
	}
	return ""
}

// load has the process load the candidate and run it once, and judges that.
func (x *exam) load(proc *process) error {
	if err := proc.say(word{op: loadOne, seed: x.judge.seed()}); err != nil {
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
			return x.judge.hear(proc, e)
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

// rehearse returns what a group takes at least but for the kernel. The data are others, lest they be there already
// when it counts. On a busy machine it goes on until the least is no chance.
func (x *exam) rehearse(proc *process) (time.Duration, error) {
	var took []time.Duration
	for start := time.Now(); !settled(took, time.Since(start)); slices.Sort(took) {
		w := word{op: fillSets, seed: rand.Uint64(), n: uint64(x.results.Group)}
		one, err := x.group(proc, w, x.plan.Limits.Reference)
		if err != nil {
			return 0, err
		}
		took = append(took, one)
	}
	return took[0], nil
}

// settled says whether what was taken is enough to know the least.
func settled(sorted []time.Duration, since time.Duration) bool {
	n := len(sorted)
	return n >= rehearsals && (sorted[rehearsals-1]-sorted[0] < sorted[0]/10 || since > longRehearsals)
}
