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

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
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
	// stale says that the reference's results had to be computed again.
	stale bool
	// current is the kernel that was started last and has no outcome since then; -1 when there is none.
	current int
	// outcomes are those known, by kernel; reported says which of them were handed on. Between two calibrations outcomes are held
	// back, since the harness measures all of them again when the device was disturbed.
	outcomes []*Outcome
	reported []bool
	// before is the last calibration's time in seconds; 0 when there was none.
	before float64
	// patience is what the process has left of it, in seconds.
	patience float64
	report   func(Outcome)
}

// run measures until every kernel has an outcome.
func (m *measurement) run(ctx context.Context) error {
	for {
		if done, err := m.process(ctx); done || err != nil {
			return err
		}
	}
}

// process runs one harness process until it has settled the fate of at least one kernel, and reports whether all are done.
func (m *measurement) process(ctx context.Context) (bool, error) {
	begin, patience := time.Now(), m.plan.patience()
	m.patience = patience
	proc, err := startProcess(ctx, m.plan.Sandbox, m.plan.command(m.outcomes, patience), m.results.File)
	if err != nil {
		return false, err
	}
	m.loading = -1
	err = m.follow(proc)
	ending := proc.kill()
	if !m.plan.Finalists {
		m.plan.Calibration.account(time.Since(begin).Seconds(), patience-m.patience)
	}
	if ctx.Err() != nil {
		return false, fmt.Errorf("measuring: %w", context.Cause(ctx))
	}
	if errors.Is(err, errStale) && !m.stale {
		m.stale = true
		return false, m.results.compute(ctx, m.plan)
	}
	if err := m.settle(err, ending); err != nil {
		return false, err
	}
	if !m.complete() {
		return false, nil
	}
	m.release(m.before)
	return true, nil
}

// blameLimit is how long a harness gets to tell whose turn it is.
const blameLimit = time.Second

// blame has a harness that is stuck in a race tell whose turn it is, by the fault that the signal makes: it reports no turns while it races. One that
// cannot tell leaves the blame to the finalist that was started last.
func (m *measurement) blame(proc *process) {
	_ = proc.Signal(syscall.SIGABRT) // an error means that it has ended
	if e, err := proc.next(blameLimit); err == nil && e.Event == "fault" && m.mayStart(e.Index) {
		m.current = e.Index
	}
}

var (
	errDone = errors.New("done")
	// errStale means that the file of results is not the reference's.
	errStale = errors.New("finds no results of the reference")
)

// follow reads events until the process is done (errDone) or something goes wrong.
func (m *measurement) follow(proc *process) error {
	limit := m.plan.Limits.Reference
	for {
		e, err := proc.next(limit)
		if errors.Is(err, os.ErrDeadlineExceeded) && m.plan.Finalists && m.running() {
			m.blame(proc)
		}
		if err != nil {
			return err
		}
		if err := m.take(e); err != nil {
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

// faultError is what a candidate did or asked for that the harness could not go on with: a stray access, as told by its signal
// handler, or more memory than there is.
type faultError struct{ message string }

// Error is the harness's message.
func (e *faultError) Error() string { return e.message }

func (m *measurement) take(e event) error {
	switch {
	case e.Event == "start" && e.Index == -1 && !m.running():
		return nil
	case e.Event == "stale" && !m.running() && m.loading < 0:
		return errStale
	case e.Event == "load" && !m.running() && e.Index == m.loading+1 && e.Index < len(m.plan.Candidates):
		m.loading = e.Index
		return nil
	case e.Event == "module" && m.loading == len(m.plan.Candidates)-1 && (!m.loaded || slices.Equal(m.kernels, e.Kernels)):
		m.load(e.Kernels)
		return nil
	case m.loading >= 0 && e.Event == "error":
		return &loadError{m.loading, tilthv1.ErrorClass_ERROR_CLASS_NONE, e.Message}
	case m.loading >= 0 && e.Event == "fault":
		return &loadError{m.loading, tilthv1.ErrorClass_ERROR_CLASS_CRASH, loadingSays + e.Message}
	case m.loading >= 0:
		return errGarbled
	case e.Event == "calibration" && m.loaded && !m.running() && e.Seconds > 0:
		m.patience = min(m.patience, e.PatienceSeconds)
		m.calibrated(e.Seconds)
		return nil
	case e.Event == "start" && m.mayStart(e.Index):
		m.current = e.Index
		return nil
	case e.Event == "outcome" && m.running() && e.Index == m.current && e.Kernel == m.kernels[m.current]:
		return m.outcome(e)
	case e.Event == "fault" && m.running() && (e.Index == m.current || m.plan.Finalists && m.mayStart(e.Index)):
		m.current = e.Index
		return &faultError{e.Message}
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

func (m *measurement) load(kernels []string) {
	m.loading = -1
	if !m.loaded {
		m.kernels, m.loaded = kernels, true
		m.outcomes, m.reported = make([]*Outcome, len(kernels)), make([]bool, len(kernels))
	}
}

// mayStart says whether a kernel's turn may begin: finalists take turns; otherwise one starts when the one before is done, in order, or
// again after a disturbance.
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
	if !ok || class == tilthv1.ErrorClass_ERROR_CLASS_NONE && len(e.Samples) == 0 {
		return errGarbled
	}
	m.finish(Outcome{Error: class, Message: e.Message, Samples: e.Samples, RelativeError: e.RelativeError, RunSeconds: e.RunSeconds})
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
func (m *measurement) settled() {
	if m.loaded && !m.plan.Finalists {
		m.release(m.before)
	}
}

// calibrated takes a calibration: what came since the one before is settled.
func (m *measurement) calibrated(seconds float64) {
	m.plan.Calibration.add(seconds)
	m.release(seconds)
	m.before = seconds
}

// release hands on the outcomes that were held back, in the order of the kernels; those of finalists all together, since the best so
// far, the first, stands until its rivals are compared with what it is now.
func (m *measurement) release(after float64) {
	if m.plan.Finalists && !m.complete() {
		return
	}
	for k, o := range m.outcomes {
		if o != nil && !m.reported[k] {
			m.reported[k] = true
			o.CalibrationRatio = m.plan.Calibration.ratio(m.before, after)
			m.report(*o)
		}
	}
}

// settle decides who is to blame for the end of a process: the candidate that was running, or else the device.
func (m *measurement) settle(err error, ending string) error {
	var infra *infraError
	switch {
	case errors.Is(err, errDone):
		return nil
	case errors.As(err, &infra), errors.As(err, new(*loadError)):
		return err
	case m.loading >= 0:
		return m.loadFailure(err, ending)
	case !m.running():
		return fmt.Errorf("harness: fails outside of a candidate: %w %s", err, ending)
	}
	failed := Outcome{Error: tilthv1.ErrorClass_ERROR_CLASS_CRASH, Message: err.Error()}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		failed.Error = tilthv1.ErrorClass_ERROR_CLASS_TIMEOUT
		failed.Message = fmt.Sprintf("runs longer than %v", m.plan.candidateLimit())
		failed.RunSeconds = m.plan.candidateLimit().Seconds()
	case errors.Is(err, io.EOF):
		failed.Message = cmp.Or(ending, "ends the harness")
		if ending == endedKilled || ending == endedMute {
			failed.Message = "is killed, or closes the harness's report"
		}
	}
	m.finish(failed)
	return nil
}
