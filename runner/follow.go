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

	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// measurement measures a plan's kernels by a sequence of harness processes, each of which continues where the
// previous one ended.
type measurement struct {
	plan    Plan
	results *results
	// kernels lists the ids of the kernels to measure, once the harness has loaded them.
	kernels []string
	loaded  bool
	// loading is the index of the object being loaded, or -1.
	loading int
	// modules lists the indexes of the kernels' objects.
	modules []int
	// judge verifies the outputs of the current process.
	judge *judge
	// best is the lowest examined cost, in seconds or, with a meter, in joules; 0 if none.
	best float64
	// current is the kernel started last without an outcome since, or -1.
	current int
	// outcomes holds the known outcomes by kernel, and reported marks those passed on. Outcomes are held back
	// between two calibrations, because the harness repeats them if the device was disturbed.
	outcomes []*Outcome
	reported []bool
	// clean is the first calibration of the process in seconds, or 0.
	clean float64
	// failed is set once a candidate gave a wrong result or wrote out of bounds in the process.
	failed bool
	// before is the last calibration in seconds, or 0.
	before float64
	// patience is the remaining patience of the process in seconds.
	patience float64
	report   func(Outcome)
	// reading is the active meter reading while a kernel runs back to back. powers holds the measured watts by kernel.
	reading *EnergyReading
	powers  map[int]float64
}

// run measures until every kernel has an outcome. After the device was lost, the next process reopens its
// link, and interrupted kernels are measured again.
func (m *measurement) run(ctx context.Context) error {
	for losses := 0; ; {
		done, err := m.process(ctx)
		if errors.As(err, new(*lostError)) && losses < maxLosses {
			losses++
			m.current, m.loading = -1, -1
			continue
		}
		if done || err != nil {
			return err
		}
	}
}

// process runs one harness process until it has determined at least one outcome, and reports whether all are done.
func (m *measurement) process(ctx context.Context) (bool, error) {
	begin, patience := time.Now(), m.plan.patience()
	m.patience = patience
	w, judge, err := m.plan.worker(ctx, m.results, 1, m.plan.command(m.outcomes, patience))
	if err != nil {
		return false, err
	}
	m.loading, m.judge, m.clean, m.failed = -1, judge, 0, false
	err = m.follow(ctx, w.process)
	if m.reading != nil { // the process ended during the reading
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

// blameLimit is the time for a stuck harness to name the running candidate.
const blameLimit = time.Second

// blame makes a harness that is stuck in a race name the running candidate, by the fault that a signal
// causes, because it reports no turns while racing. Otherwise the finalist started last is blamed.
func (m *measurement) blame(proc *process) {
	_ = proc.Signal(syscall.SIGABRT) // an error means that it has ended
	if e, err := proc.next(blameLimit); err == nil && e.Event == "fault" && m.mayStart(e.Index) {
		m.current = e.Index
	}
}

var errDone = errors.New("done")

// follow reads events until the process is done (errDone) or fails.
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

func (e *infraError) Error() string { return "harness: " + e.message }

// tooLargeError means that the workload does not fit on the device.
type tooLargeError struct{ message string }

func (e *tooLargeError) Error() string { return e.message }

// faultError is a fatal action of a candidate: an invalid access, caught by the harness's signal handler, or
// a request for too much memory.
type faultError struct{ message string }

func (e *faultError) Error() string { return e.message }

// lostError means that a linked device stopped answering. Candidates cannot forge it.
type lostError struct{ message string }

func (e *lostError) Error() string { return "the device is lost: " + e.message }

// overdueError means that the device stopped a candidate that exceeded its time.
type overdueError struct{ message string }

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
		return m.judge.verify(proc, e)
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

// loadingSays prefixes messages about candidates whose object misbehaves when it is loaded.
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

// start starts a kernel's turn. Earlier verdicts no longer count, except for finalists, which have several turns.
func (m *measurement) start(k int) {
	m.current = k
	if !m.plan.Finalists {
		delete(m.judge.verdicts, k)
	}
}

// mayStart reports whether a kernel's turn may start. Finalists take turns; other kernels start in order
// after the previous one is done, or again after a disturbance.
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
		o.EnergyJoules = watts * stats.Of(e.Samples).Median
	}
	m.finish(o)
	return nil
}

// sustain starts reading the meter while the kernel runs back to back.
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

// loadFailure handles the end of a process during the loading of an object.
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

// settled reports the known outcomes if no further calibration will follow.
func (m *measurement) settled(ctx context.Context) error {
	if !m.loaded || m.plan.Finalists {
		return nil
	}
	return m.release(ctx, m.before)
}

// maxSpeedUp is the maximum plausible speed-up of a device after the first calibration of a process.
const maxSpeedUp = 1.25

// believed limits a calibration to a plausible value. The first one of a process precedes all candidates and
// is trusted.
func (m *measurement) believed(seconds float64) float64 {
	m.clean = cmp.Or(m.clean, seconds)
	return max(seconds, m.clean/maxSpeedUp)
}

// calibrated handles a calibration, which settles the outcomes since the previous one. The process waits meanwhile.
func (m *measurement) calibrated(ctx context.Context, proc *process, seconds float64) error {
	m.plan.Calibration.add(seconds)
	if err := m.release(ctx, seconds); err != nil {
		return err
	}
	m.before = seconds
	return proc.send(command{op: cmdContinue, seed: m.judge.seed()})
}

// release reports the outcomes held back, in the order of the kernels. Finalists are reported together,
// because the first, the best so far, counts until its rivals are compared with its new measurement.
func (m *measurement) release(ctx context.Context, after float64) error {
	if m.plan.Finalists && !m.complete() {
		return nil
	}
	if err := m.remeasureFailedAlone(ctx); err != nil {
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

// settle attributes the end of a process to the running candidate or to the device.
func (m *measurement) settle(err error, ending string) error {
	switch {
	case errors.Is(err, errDone):
		return nil
	case errors.As(err, new(*infraError)), errors.As(err, new(*loadError)), errors.As(err, new(*tooLargeError)):
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

// failure returns the outcome of a candidate during whose turn a process ended.
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
