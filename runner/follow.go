package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// measureFrom runs one harness process from kernel `first` on and returns how many kernels it settled, at least one.
func measureFrom(ctx context.Context, p Plan, first int, report func(Outcome)) (int, error) {
	proc, err := startProcess(ctx, p.Scratch, p.command(first))
	if err != nil {
		return 0, err
	}
	run := &run{plan: p, current: -1, next: first, report: report}
	err = run.follow(proc)
	ending := proc.kill()
	if ctx.Err() != nil {
		return 0, fmt.Errorf("measuring: %w", context.Cause(ctx))
	}
	if err := run.settle(err, ending); err != nil {
		return 0, err
	}
	return run.next - first, nil
}

// run follows one harness process.
type run struct {
	plan Plan
	// current is the kernel that was started and has no outcome yet; -1 when there is none.
	current int
	// next is the kernel whose start is due.
	next   int
	report func(Outcome)
}

var errDone = errors.New("done")

// follow reads events until the process is done (errDone) or something goes wrong.
func (r *run) follow(proc *process) error {
	limit := r.plan.Limits.Reference
	for {
		e, err := proc.next(limit)
		if err != nil {
			return err
		}
		if err := r.take(e); err != nil {
			return err
		}
		limit = r.plan.Limits.Reference
		if r.current >= 0 {
			limit = r.plan.candidateLimit()
		}
	}
}

// infraError is a failure of the harness itself.
type infraError struct{ message string }

// Error is the harness's message.
func (e *infraError) Error() string { return "harness: " + e.message }

// faultError is a candidate's stray access, as told by the harness's signal handler.
type faultError struct{ message string }

// Error is the harness's message.
func (e *faultError) Error() string { return e.message }

func (r *run) take(e event) error {
	switch {
	case e.Event == "start" && e.Index == -1 && r.current == -1:
		return nil
	case e.Event == "start" && e.Index == r.next && r.current == -1 && r.next < len(r.plan.Kernels):
		r.current = r.next
		return nil
	case e.Event == "outcome" && e.Index == r.current && r.current >= 0:
		if due := r.plan.Kernels[r.current]; e.Kernel != due {
			return &infraError{fmt.Sprintf("the module has kernel %q where %q is due", e.Kernel, due)}
		}
		return r.outcome(e)
	case e.Event == "fault" && e.Index == r.current:
		return &faultError{e.Message}
	case e.Event == "error":
		return &infraError{e.Message}
	case e.Event == "done" && r.next == len(r.plan.Kernels):
		return errDone
	default:
		return errGarbled
	}
}

func (r *run) outcome(e event) error {
	classes := map[string]tilthv1.ErrorClass{
		"ok":      tilthv1.ErrorClass_ERROR_CLASS_NONE,
		"wrong":   tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT,
		"overrun": tilthv1.ErrorClass_ERROR_CLASS_CRASH,
	}
	class, ok := classes[e.Status]
	if !ok || class == tilthv1.ErrorClass_ERROR_CLASS_NONE && len(e.Samples) == 0 {
		return errGarbled
	}
	r.finish(Outcome{Error: class, Message: e.Message, Samples: e.Samples, RelativeError: e.RelativeError, RunSeconds: e.RunSeconds})
	return nil
}

func (r *run) finish(o Outcome) {
	o.Kernel = r.plan.Kernels[r.current]
	r.report(o)
	r.current = -1
	r.next++
}

// settle decides who is to blame for the end of a process: the candidate that was running, or else the device.
func (r *run) settle(err error, ending string) error {
	var infra *infraError
	switch {
	case errors.Is(err, errDone):
		return nil
	case errors.As(err, &infra):
		return err
	case r.current == -1:
		return fmt.Errorf("harness: fails outside of a candidate: %w %s", err, ending)
	}
	failed := Outcome{Error: tilthv1.ErrorClass_ERROR_CLASS_CRASH, Message: err.Error()}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		failed.Error = tilthv1.ErrorClass_ERROR_CLASS_TIMEOUT
		failed.Message = fmt.Sprintf("runs longer than %v", r.plan.candidateLimit())
		failed.RunSeconds = r.plan.candidateLimit().Seconds()
	case errors.Is(err, io.EOF):
		failed.Message = ending
		if ending == "" {
			failed.Message = "ends the harness"
		}
	}
	r.finish(failed)
	return nil
}
