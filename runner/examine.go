package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// examinations is how often a kernel is examined, each time in a fresh process, until its latency is known well
	// enough or maxExamined has passed. The pauses in between double, so that a disturbance ends within one or two.
	examinations = 6
	maxExamined  = time.Second
	firstPause   = 5 * time.Millisecond
	// maxClockRatio is the maximum ratio of the runner's time to the process's time. Part of the ratio is
	// legitimate: outside of its samples a kernel finds its inputs in different caches.
	maxClockRatio = 3
	// turnTime is short enough for many turns to go undisturbed on a busy machine.
	turnTime = 400 * time.Microsecond
	// examRank is the number of executions that must be short enough for a claim to be believed, or long enough for
	// it to be refused. A wrong verdict requires as many coins to fall on one side.
	examRank = 20
)

// evidence holds times of one kernel by the runner's clock, in seconds.
type evidence struct {
	// shortest is the least time of an execution with everything around it. Disturbances only lengthen it, so the
	// latency is no longer.
	shortest float64
	// ran holds the times of executions, and rehearsed those of the same without the kernel, in another process. Each
	// execution has its rehearsal beside it. Both are sorted.
	ran, rehearsed []float64
}

// add adds an execution and its rehearsal, in random order before or after it. Without one, rehearsed is 0.
func (e *evidence) add(ran, rehearsed float64) {
	if e.shortest == 0 || ran < e.shortest {
		e.shortest = ran
	}
	if rehearsed > 0 {
		e.ran, e.rehearsed = insert(e.ran, ran), insert(e.rehearsed, rehearsed)
	}
}

func insert(sorted []float64, v float64) []float64 {
	at, _ := slices.BinarySearch(sorted, v)
	return slices.Insert(sorted, at, v)
}

// bounds returns an interval that contains the latency. If examRank executions, less the latency, are shorter than all
// rehearsals, it is by chance: a coin decided which of two turns was which, so no disturbance causes it.
func (e *evidence) bounds() (low, high float64) {
	if len(e.ran) < examRank {
		return 0, e.shortest
	}
	low, high = e.ran[0]-e.rehearsed[examRank-1], e.ran[examRank-1]-e.rehearsed[0]
	if high <= 0 { // no kernel takes a negative time
		return 0, e.shortest
	}
	return max(0, low), min(high, e.shortest)
}

// confirms reports whether the kernel cannot take much longer than claimed.
func (e *evidence) confirms(claimed float64) bool {
	_, high := e.bounds()
	return high > 0 && high <= maxClockRatio*claimed
}

// decides reports whether the evidence suffices to accept or refuse a claim.
func (e *evidence) decides(claimed float64) bool {
	low, _ := e.bounds()
	return low > maxClockRatio*claimed || e.confirms(claimed)
}

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
		if o := m.outcomes[k]; o.Error == tilthv1.ErrorClass_ERROR_CLASS_NONE && (best == 0 || cost(o) < best) {
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

// examine runs a candidate in separate processes, timed by the runner's clock, on data that no candidate has
// seen. A wrong result fails the candidate. A claim that is not confirmed is replaced by the runner's upper bound.
func (m *measurement) examine(ctx context.Context, k int) error {
	o := m.outcomes[k]
	x := &exam{plan: m.plan.only(m.kernels[k], m.modules[k]), results: m.results, claimed: median(o), turn: m.results.Group}
	defer func() {
		if x.rehearsals != nil {
			x.rehearsals.SignalGroup(syscall.SIGCONT)
			x.rehearsals.finish(ctx, true)
		}
	}()
	began := time.Now()
	for n := range examinations {
		failed, err := x.repeat(ctx)
		if err != nil {
			return err
		}
		if failed != nil {
			failed.Kernel, failed.RunSeconds = o.Kernel, o.RunSeconds
			m.outcomes[k] = failed
			return nil
		}
		if m.plan.linked() || x.seen.confirms(x.claimed) { // candidates cannot manipulate a board's counter
			return nil
		}
		if x.seen.decides(x.claimed) || time.Since(began) > maxExamined {
			break
		}
		if err := pause(ctx, firstPause<<n); err != nil {
			return err
		}
	}
	low, high := x.seen.bounds()
	o.Samples = []float64{high}
	o.EnergyJoules *= high / x.claimed
	o.Remeasured = fmt.Sprintf("its own process's clock says %.3g µs, the runner's %.3g to %.3g µs", 1e6*x.claimed, 1e6*low, 1e6*high)
	return nil
}

// repeat examines the candidate in one process, again if the device was lost meanwhile.
func (x *exam) repeat(ctx context.Context) (failed *Outcome, err error) {
	for range maxLosses + 1 {
		x.begun = false
		if failed, err = x.run(ctx); !errors.As(err, new(*lostError)) {
			break
		}
	}
	return failed, err
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

// exam examines one candidate.
type exam struct {
	plan    Plan
	results *results
	// claimed is the latency by the clock of the candidate's own process.
	claimed float64
	seen    evidence
	judge   *judge
	// rehearsals is a process without the candidate, once one is needed.
	rehearsals *worker
	// begun is set once loading of the candidate's object started, which makes the candidate responsible for failures.
	begun bool
	// outputs holds a copy of a group's outputs, so that later writes of the process do not count.
	outputs []byte
	// turn is the number of sets that run together: all of a group at first, and then as many as take turnTime.
	turn int
}

// run adds the evidence of a fresh process, or returns the candidate's failure. An error means that the device is
// at fault or ctx ended.
func (x *exam) run(ctx context.Context) (failed *Outcome, err error) {
	x.outputs = make([]byte, x.results.SlotBytes()*int64(x.results.Group))
	w, judge, err := x.worker(ctx)
	if err != nil {
		return nil, err
	}
	x.judge = judge
	wrong, err := x.follow(ctx, w)
	w.SignalGroup(syscall.SIGCONT)
	ending := w.finish(ctx, err == nil && wrong == "")
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("measuring: %w", context.Cause(ctx))
	case err != nil && x.plan.linked() && !blamed(err) && !errors.As(err, new(*infraError)):
		return nil, x.plan.lost(err, ending)
	case err != nil && !x.begun:
		return nil, fmt.Errorf("harness: examining a candidate: %w %s", err, ending)
	case err != nil:
		return new(x.plan.failure(err, ending)), nil
	case wrong != "":
		return &Outcome{Error: tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT, Message: "on other data: " + wrong}, nil
	}
	return nil, nil
}

// worker starts a process for an examination or its rehearsals. The caller must finish it.
func (x *exam) worker(ctx context.Context) (*worker, *judge, error) {
	args := append(x.plan.common(), "--examine", "1", "--kernel", x.plan.Kernels[0], x.plan.Reference, x.plan.Candidates[0])
	return x.plan.worker(ctx, x.results, x.results.Group, x.plan.sandboxed(args))
}

// finish ends an examination or rehearsal and releases its process. ending is as in release.
func (w *worker) finish(ctx context.Context, well bool) (ending string) {
	well = well && w.pool != nil && w.run(command{op: cmdEnough}, becomeReady) == nil
	return w.release(ctx, well)
}

// follow loads and runs the candidate until the evidence decides. wrong describes a wrong result, or is empty.
func (x *exam) follow(ctx context.Context, w *worker) (wrong string, err error) {
	if err := x.judge.begin(w.process, x.plan.Limits.Reference); err != nil {
		return "", err
	}
	x.begun = true
	if err := x.load(w.process); err != nil {
		return "", err
	}
	if v := x.judge.verdicts[0]; v.wrong != "" {
		return v.wrong, nil
	}
	for k := 0; k < x.results.Exams && (k < minExams || !x.plan.linked() && !x.seen.decides(x.claimed)); k += x.turn {
		for x.turn > 1 && x.seen.shortest*float64(x.turn) > turnTime.Seconds() {
			x.turn /= 2
		}
		if wrong, err := x.pair(ctx, w, k); err != nil || wrong != "" {
			return wrong, err
		}
	}
	return "", nil
}

// pair runs the kernel on the sets from k on and rehearses the same in the other process, if that is needed. Each turn
// is verified before the next; otherwise a process could deliver one during another and appear to take no time.
func (x *exam) pair(ctx context.Context, w *worker, k int) (wrong string, err error) {
	var ran, rehearsed float64
	first := rand.IntN(2) == 0 && x.seen.shortest > 0 && !x.seen.confirms(x.claimed) // the first run often suffices
	if first {
		if rehearsed, err = x.rehearse(ctx, w); err != nil {
			return "", err
		}
	}
	c := command{op: cmdRunSets, seed: x.results.seed(practiceSets + k), n: uint64(x.turn)}
	ran, err = x.group(w, x.rehearsals, c, x.plan.candidateLimit()+x.plan.Limits.Reference)
	if err != nil {
		return "", err
	}
	if wrong := x.wrong(k); wrong != "" || x.plan.linked() {
		return wrong, nil
	}
	if !first && ran > maxClockRatio*x.claimed {
		if rehearsed, err = x.rehearse(ctx, w); err != nil {
			return "", err
		}
	}
	x.seen.add(ran, rehearsed)
	return "", nil
}

// group returns the time of one run on a set, from starting a group until its outputs are out of the process's
// reach. The other process stands still meanwhile, as it could otherwise make the group take longer.
func (x *exam) group(w *worker, other *worker, c command, limit time.Duration) (seconds float64, err error) {
	if other != nil {
		other.SignalGroup(syscall.SIGSTOP)
		w.SignalGroup(syscall.SIGCONT)
		if err := w.run(command{op: cmdFillSets, seed: rand.Uint64(), n: 1}, x.plan.Limits.Reference); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	if err := w.run(c, limit); err != nil {
		return 0, err
	}
	for k := range x.turn {
		copy(x.output(k), w.memory.Slot(k, x.results.SlotBytes()))
	}
	return time.Since(began).Seconds() / float64(x.turn*x.results.runs()), nil
}

// rehearse returns the time of one set without the kernel, on other data, which leaves the measured ones uncached.
func (x *exam) rehearse(ctx context.Context, candidate *worker) (seconds float64, err error) {
	x.begun = false
	defer func() { x.begun = err == nil }()
	if x.rehearsals == nil {
		w, judge, err := x.worker(ctx)
		if err != nil {
			return 0, err
		}
		x.rehearsals = w
		if err := judge.begin(w.process, x.plan.Limits.Reference); err != nil {
			return 0, err
		}
	}
	c := command{op: cmdFillSets, seed: rand.Uint64(), n: uint64(x.turn)}
	return x.group(x.rehearsals, candidate, c, x.plan.Limits.Reference)
}

// output returns the copied output of the last group on its k-th set.
func (x *exam) output(k int) []byte {
	size := int(x.results.SlotBytes())
	return x.outputs[k*size : (k+1)*size]
}

// wrong verifies the outputs of the group that starts with a set, and describes an error.
func (x *exam) wrong(first int) string {
	for k := range x.turn {
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

// maxRaces limits the races of finalists on a drifting device. The last race counts, and the tracker is
// informed about the device.
const maxRaces = 3

// race measures finalists between two calibrations, and repeats the race if the calibrations differ by more
// than limit.
func (h *Handler) race(ctx context.Context, plan Plan, limit float64, s *batchReport) error {
	before, err := h.Watch.recent(ctx)
	if err != nil {
		return err
	}
	var again string
	for n := 1; ; n++ {
		var outcomes []Outcome
		err := Measure(ctx, plan, func(o Outcome) { outcomes = append(outcomes, o) })
		after := before
		if err == nil {
			after, err = h.Watch.run(ctx)
		}
		if changed := CalibrationChange(before, after); err == nil && changed > limit && n < maxRaces {
			again = fmt.Sprintf("%s: the device changed by %.1f %% while finalists raced, over %.1f %%", h.Device, 100*changed, 100*limit)
			h.Logger.Info("finalists race again", "reason", again)
			before = after
			continue
		}
		for _, o := range outcomes {
			o.Remeasured = again
			s.add(o)
		}
		if err != nil {
			return err
		}
		if err := h.Watch.report(ctx, s.lease.GetSession(), after); err != nil { // the finalists do not fail
			h.Logger.Warn("calibration not reported", "error", err)
		}
		return context.Cause(ctx)
	}
}

// remeasureFailedAlone measures failed candidates once more without other candidates' objects, because one object
// must not cause the failure of another's candidates.
func (m *measurement) remeasureFailedAlone(ctx context.Context) error {
	if len(m.plan.Candidates) == 1 {
		return nil
	}
	for k, o := range m.outcomes {
		if o == nil || m.reported[k] || o.Error == tilthv1.ErrorClass_ERROR_CLASS_NONE {
			continue
		}
		alone := &measurement{plan: m.plan.only(m.kernels[k], m.modules[k]), results: m.results, current: -1, loading: -1}
		alone.report = func(again Outcome) { m.outcomes[k] = &again }
		if err := alone.run(ctx); err != nil && !errors.As(err, new(*loadError)) {
			return err
		}
	}
	return nil
}
