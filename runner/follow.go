package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// measurement follows the harness processes that measure one module, each from the kernel on where the one before ended.
type measurement struct {
	plan Plan
	// kernels are the ids of the module's kernels, once the harness has loaded them.
	kernels []string
	loaded  bool
	// current is the kernel that was started and has no outcome yet; -1 when there is none.
	current int
	// next is the kernel whose start is due.
	next   int
	report func(Outcome)
}

// process runs one harness process until it has settled the fate of at least one kernel, and reports whether all are done.
func (m *measurement) process(ctx context.Context) (bool, error) {
	proc, err := startProcess(ctx, m.plan.Scratch, m.plan.command(m.next))
	if err != nil {
		return false, err
	}
	err = m.follow(proc)
	ending := proc.kill()
	if ctx.Err() != nil {
		return false, fmt.Errorf("measuring: %w", context.Cause(ctx))
	}
	if err := m.settle(err, ending); err != nil {
		return false, err
	}
	return m.next == len(m.kernels), nil
}

var errDone = errors.New("done")

// follow reads events until the process is done (errDone) or something goes wrong.
func (m *measurement) follow(proc *process) error {
	limit := m.plan.Limits.Reference
	for {
		e, err := proc.next(limit)
		if err != nil {
			return err
		}
		if err := m.take(e); err != nil {
			return err
		}
		limit = m.plan.Limits.Reference
		if m.current >= 0 {
			limit = m.plan.candidateLimit()
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
	case e.Event == "start" && e.Index == -1 && m.current == -1:
		return nil
	case e.Event == "module" && m.current == -1 && (!m.loaded || slices.Equal(m.kernels, e.Kernels)):
		m.kernels, m.loaded = e.Kernels, true
		return nil
	case e.Event == "start" && e.Index == m.next && m.current == -1 && m.next < len(m.kernels):
		m.current = m.next
		return nil
	case e.Event == "outcome" && m.current >= 0 && e.Index == m.current && e.Kernel == m.kernels[m.current]:
		return m.outcome(e)
	case e.Event == "fault" && e.Index == m.current:
		return &faultError{e.Message}
	case e.Event == "error" && m.current >= 0: // the candidate asks for what the harness cannot give
		return &faultError{e.Message}
	case e.Event == "error":
		return &infraError{e.Message}
	case e.Event == "done" && m.loaded && m.next == len(m.kernels):
		return errDone
	default:
		return errGarbled
	}
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
	m.report(o)
	m.current = -1
	m.next++
}

// settle decides who is to blame for the end of a process: the candidate that was running, or else the device.
func (m *measurement) settle(err error, ending string) error {
	var infra *infraError
	switch {
	case errors.Is(err, errDone):
		return nil
	case errors.As(err, &infra):
		return err
	case m.current == -1:
		return fmt.Errorf("harness: fails outside of a candidate: %w %s", err, ending)
	}
	failed := Outcome{Error: tilthv1.ErrorClass_ERROR_CLASS_CRASH, Message: err.Error()}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		failed.Error = tilthv1.ErrorClass_ERROR_CLASS_TIMEOUT
		failed.Message = fmt.Sprintf("runs longer than %v", m.plan.candidateLimit())
		failed.RunSeconds = m.plan.candidateLimit().Seconds()
	case errors.Is(err, io.EOF):
		failed.Message = ending
		if ending == "" {
			failed.Message = "ends the harness"
		}
	}
	m.finish(failed)
	return nil
}
