package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/internal/stat"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner/energy"
)

// measurement follows the harness processes that measure a plan's kernels, each those that the ones before left.
type measurement struct {
	plan    Plan
	results *results
	// kernels are the ids of the kernels to be measured, once the harness has loaded them.
	kernels []string
	loaded  bool
	// loading is the object that is being loaded; -1 when there is none.
	loading int
	// modules are the numbers of the objects that they are in.
	modules []int
	// judge tells right from wrong; of the process that runs.
	judge *judge
	// best is the least cost that was examined, in seconds, or joules where a meter is read; 0 = none.
	best float64
	// current is the kernel that was started last and has no outcome since then; -1 when there is none.
	current int
	// outcomes are those known, by kernel; reported says which of them were handed on. Between two calibrations
	// outcomes are held back, since the harness measures all of them again when the device was disturbed.
	outcomes []*Outcome
	reported []bool
	// clean is the first calibration's time of the process, in seconds; 0 while there was none.
	clean float64
	// failed says that a candidate was wrong in the process, or wrote where it should not.
	failed bool
	// before is the last calibration's time in seconds; 0 when there was none.
	before float64
	// patience is what the process has left of it, in seconds.
	patience float64
	report   func(Outcome)
	// reading is under way while a kernel runs back to back; powers are the watts that were found, by kernel.
	reading *energy.Reading
	powers  map[int]float64
}

// run measures until every kernel has an outcome. A device that is lost is found again, or not, when the next process
// opens its link; what it was lost in is measured again.
func (m *measurement) run(ctx context.Context) error {
	for losses := 0; ; {
		done, err := m.process(ctx)
		if errors.As(err, new(*lostError)) && losses < mostLosses {
			losses++
			m.current, m.loading = -1, -1
			continue
		}
		if done || err != nil {
			return err
		}
	}
}

// process runs one harness process until it has settled the fate of at least one kernel, and reports whether all are
// done.
func (m *measurement) process(ctx context.Context) (bool, error) {
	begin, patience := time.Now(), m.plan.patience()
	m.patience = patience
	w, judge, err := m.plan.worker(ctx, m.results, 1, m.plan.command(m.outcomes, patience))
	if err != nil {
		return false, err
	}
	m.loading, m.judge, m.clean, m.failed = -1, judge, 0, false
	err = m.follow(ctx, w.process)
	if m.reading != nil { // the process ended in it
		_, _ = m.reading.End()
		m.reading = nil
	}
	ending := w.release(ctx, errors.Is(err, errDone) && !m.failed)
	if !m.plan.Finalists {
		m.plan.Calibration.account(time.Since(begin).Seconds(), patience-m.patience)
	}
	if ctx.Err() != nil {
		return false, fmt.Errorf("measuring: %w", context.Cause(ctx))
	}
	if err := m.settle(err, ending); err != nil {
		return false, err
	}
	if !m.complete() {
		return false, nil
	}
	return true, m.release(ctx, m.before)
}

// blameLimit is how long a harness gets to tell whose turn it is.
const blameLimit = time.Second

// blame has a harness that is stuck in a race tell whose turn it is, by the fault that the signal makes: it reports no
// turns while it races. One that cannot tell leaves the blame to the finalist that was started last.
func (m *measurement) blame(proc *process) {
	_ = proc.Signal(syscall.SIGABRT) // an error means that it has ended
	if e, err := proc.next(blameLimit); err == nil && e.Event == "fault" && m.mayStart(e.Index) {
		m.current = e.Index
	}
}

var errDone = errors.New("done")

// follow reads events until the process is done (errDone) or something goes wrong.
func (m *measurement) follow(ctx context.Context, proc *process) error {
	limit := m.plan.Limits.Reference
	if err := m.judge.begin(proc, limit); err != nil {
		return err
	}
	for {
		e, err := proc.next(limit)
		if errors.Is(err, os.ErrDeadlineExceeded) && m.plan.Finalists && m.running() {
			m.blame(proc)
		}
		if err != nil {
			return err
		}
		if err := m.take(ctx, proc, e); err != nil {
			return err
		}
		limit = m.plan.Limits.Reference
		if m.running() {
			limit = m.plan.candidateLimit()
		} else if m.loading >= 0 {
			limit = m.plan.Limits.Load
		}
	}
}

// infraError is a failure of the harness itself.
type infraError struct{ message string }

// Error is the harness's message.
func (e *infraError) Error() string { return "harness: " + e.message }

// tooLargeError is a workload that the device has no room for.
type tooLargeError struct{ message string }

// Error is the harness's message.
func (e *tooLargeError) Error() string { return e.message }

// faultError is what a candidate did or asked for that the harness could not go on with: a stray access, as told by
// its signal handler, or more memory than there is.
type faultError struct{ message string }

// Error is the harness's message.
func (e *faultError) Error() string { return e.message }

// lostError is a device at the end of a link that answers no longer. No candidate can reach what answers.
type lostError struct{ message string }

// Error is the harness's message.
func (e *lostError) Error() string { return "the device is lost: " + e.message }

// overdueError is a candidate that its device ended, as it ran longer than it may.
type overdueError struct{ message string }

// Error is the harness's message.
func (e *overdueError) Error() string { return e.message }

func (m *measurement) take(ctx context.Context, proc *process, e event) error {
	if m.plan.linked() {
		if err := e.lost(); err != nil {
			return err
		}
	}
	switch {
	case e.Event == "load" && !m.running() && e.Index == m.loading+1 && e.Index < len(m.plan.Candidates):
		m.loading = e.Index
		return nil
	case e.Event == "module" && m.loading == len(m.plan.Candidates)-1 && (!m.loaded || slices.Equal(m.kernels, e.Kernels)):
		return m.load(e)
	case m.loading >= 0 && e.Event == "error":
		return &loadError{m.loading, tilthv1.ErrorClass_ERROR_CLASS_NONE, e.Message}
	case m.loading >= 0 && e.Event == "fault":
		return &loadError{m.loading, tilthv1.ErrorClass_ERROR_CLASS_CRASH, loadingSays + e.Message}
	case m.loading >= 0:
		return errGarbled
	case e.Event == "too-large" && m.clean == 0: // no candidate is loaded that could say so
		return &tooLargeError{e.Message}
	case e.Event == "calibration" && m.loading < 0 && !m.running() && e.Seconds > 0:
		m.patience = min(m.patience, e.PatienceSeconds)
		return m.calibrated(ctx, proc, m.believed(e.Seconds))
	case e.Event == "start" && m.mayStart(e.Index):
		m.start(e.Index)
		return nil
	case e.Event == "ran" && m.running() && (e.Index == m.current || m.plan.Finalists && m.mayStart(e.Index)):
		m.current = e.Index
		return m.judge.hear(proc, e)
	case e.Event == "sustain" && m.running() && e.Index == m.current && m.plan.Meter != nil && m.reading == nil:
		return m.sustain()
	case e.Event == "sustained" && m.running() && e.Index == m.current && m.reading != nil:
		return m.sustained()
	case e.Event == "outcome" && m.running() && e.Index == m.current && e.Kernel == m.kernels[m.current]:
		return m.outcome(e)
	case e.Event == "fault" && m.running() && (e.Index == m.current || m.plan.Finalists && m.mayStart(e.Index)):
		m.current = e.Index
		return &faultError{e.Message}
	case e.Event == "timeout" && m.plan.linked() && m.running() && (e.Index == m.current || m.plan.Finalists && m.mayStart(e.Index)):
		m.current = e.Index
		return &overdueError{e.Message}
	case e.Event == "error" && m.running(): // the candidate asks for what the harness cannot give
		return &faultError{e.Message}
	case e.Event == "error":
		return &infraError{e.Message}
	case e.Event == "done" && m.complete():
		return errDone
	default:
		return errGarbled
	}
}

func (m *measurement) running() bool { return m.current >= 0 }

// loadingSays begins what is said of a candidate whose object did something when it was loaded.
const loadingSays = "its object, when it is loaded: "

func (m *measurement) load(e event) error {
	m.loading = -1
	inside := func(module int) bool { return module >= 0 && module < len(m.plan.Candidates) }
	if len(e.Modules) != len(e.Kernels) || slices.ContainsFunc(e.Modules, func(module int) bool { return !inside(module) }) {
		return errGarbled
	}
	if !m.loaded {
		m.kernels, m.modules, m.loaded = e.Kernels, e.Modules, true
		m.outcomes, m.reported = make([]*Outcome, len(e.Kernels)), make([]bool, len(e.Kernels))
	}
	return nil
}

// start begins a kernel's turn. What was said of it before counts no longer, but of finalists, which have several
// turns.
func (m *measurement) start(k int) {
	m.current = k
	if !m.plan.Finalists {
		m.judge.forget(k)
	}
}

// mayStart says whether a kernel's turn may begin: finalists take turns; otherwise one starts when the one before is
// done, in order, or again after a disturbance.
func (m *measurement) mayStart(k int) bool {
	if k < 0 || k >= len(m.kernels) || m.reported[k] {
		return false
	}
	return m.plan.Finalists || !m.running() && (k == 0 || m.outcomes[k-1] != nil)
}

func (m *measurement) complete() bool {
	return m.loaded && !slices.Contains(m.outcomes, nil)
}

func (m *measurement) outcome(e event) error {
	classes := map[string]tilthv1.ErrorClass{
		"ok":      tilthv1.ErrorClass_ERROR_CLASS_NONE,
		"wrong":   tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT,
		"overrun": tilthv1.ErrorClass_ERROR_CLASS_CRASH,
	}
	class, ok := classes[e.Status]
	verdict, fits := m.judge.of(m.current, e.Status)
	none := class == tilthv1.ErrorClass_ERROR_CLASS_NONE
	if !ok || !fits || none != (len(e.Samples) > 0) || slices.ContainsFunc(e.Samples, func(s float64) bool { return s <= 0 }) {
		return errGarbled
	}
	m.failed = m.failed || !none
	o := Outcome{Error: class, Message: cmp.Or(verdict.wrong, e.Message), Samples: e.Samples, RelativeError: verdict.relative, RunSeconds: e.RunSeconds}
	if none && m.plan.Meter != nil {
		watts, measured := m.powers[m.current]
		if !measured {
			return errGarbled
		}
		o.EnergyJoules = watts * stat.Of(e.Samples).Median
	}
	m.finish(o)
	return nil
}

// sustain begins to read the meter: the kernel runs back to back from now on.
func (m *measurement) sustain() (err error) {
	if m.reading, err = m.plan.Meter.Begin(); err != nil {
		return &infraError{err.Error()}
	}
	return nil
}

// sustained ends the reading.
func (m *measurement) sustained() error {
	watts, err := m.reading.End()
	m.reading = nil
	if err != nil {
		return &infraError{err.Error()}
	}
	if m.powers == nil {
		m.powers = map[int]float64{}
	}
	m.powers[m.current] = watts
	return nil
}

func (m *measurement) finish(o Outcome) {
	o.Kernel = m.kernels[m.current]
	m.outcomes[m.current] = &o
	m.current = -1
}

// loadFailure is the end of a process while it was loading an object.
func (m *measurement) loadFailure(err error, ending string) error {
	e := &loadError{m.loading, tilthv1.ErrorClass_ERROR_CLASS_CRASH, loadingSays + err.Error()}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.class, e.message = tilthv1.ErrorClass_ERROR_CLASS_TIMEOUT, fmt.Sprintf("%sruns longer than %v", loadingSays, m.plan.Limits.Load)
	case errors.Is(err, io.EOF):
		e.message = loadingSays + cmp.Or(ending, "ends the harness")
	}
	return e
}

// settled hands on what is known although there will be no further calibration.
func (m *measurement) settled(ctx context.Context) error {
	if !m.loaded || m.plan.Finalists {
		return nil
	}
	return m.release(ctx, m.before)
}

// mostSpeedUp is how many times as fast a device may become after the first calibration of a process.
const mostSpeedUp = 1.25

// believed is a calibration as far as it can be true. The first of a process is made before any candidate is loaded.
func (m *measurement) believed(seconds float64) float64 {
	if m.clean == 0 {
		m.clean = seconds
	}
	return max(seconds, m.clean/mostSpeedUp)
}

// calibrated takes a calibration: what came since the one before is settled. The process waits meanwhile.
func (m *measurement) calibrated(ctx context.Context, proc *process, seconds float64) error {
	m.plan.Calibration.add(seconds)
	if err := m.release(ctx, seconds); err != nil {
		return err
	}
	m.before = seconds
	return proc.say(word{op: goOn, seed: m.judge.seed()})
}

// release hands on the outcomes that were held back, in the order of the kernels; those of finalists all together,
// since the best so far, the first, stands until its rivals are compared with what it is now.
func (m *measurement) release(ctx context.Context, after float64) error {
	if m.plan.Finalists && !m.complete() {
		return nil
	}
	if err := m.appeals(ctx); err != nil {
		return err
	}
	if err := m.examineBest(ctx); err != nil {
		return err
	}
	for k, o := range m.outcomes {
		if o != nil && !m.reported[k] {
			m.reported[k] = true
			o.CalibrationRatio = m.plan.Calibration.ratio(m.before, after)
			m.report(*o)
		}
	}
	return nil
}

// settle decides who is to blame for the end of a process: the candidate that was running, or else the device.
func (m *measurement) settle(err error, ending string) error {
	var infra *infraError
	switch {
	case errors.Is(err, errDone):
		return nil
	case errors.As(err, &infra), errors.As(err, new(*loadError)), errors.As(err, new(*tooLargeError)):
		return err
	case m.plan.linked() && !blamed(err):
		return m.plan.lost(err, ending)
	case m.loading >= 0:
		return m.loadFailure(err, ending)
	case !m.running():
		return fmt.Errorf("harness: fails outside of a candidate: %w %s", err, ending)
	}
	m.finish(m.plan.failure(err, ending))
	return nil
}

// failure is the outcome of a candidate in whose turn a process ended.
func (p Plan) failure(err error, ending string) Outcome {
	failed := Outcome{Error: tilthv1.ErrorClass_ERROR_CLASS_CRASH, Message: err.Error()}
	switch {
	case errors.As(err, new(*overdueError)):
		failed.Error = tilthv1.ErrorClass_ERROR_CLASS_TIMEOUT
	case errors.Is(err, os.ErrDeadlineExceeded):
		failed.Error = tilthv1.ErrorClass_ERROR_CLASS_TIMEOUT
		failed.Message = fmt.Sprintf("runs longer than %v", p.candidateLimit())
		failed.RunSeconds = p.candidateLimit().Seconds()
	case errors.Is(err, io.EOF):
		failed.Message = cmp.Or(ending, "ends the harness")
		if ending == endedKilled || ending == endedMute {
			failed.Message = "is killed, or closes the harness's report"
		}
	}
	return failed
}
