package packagerun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/sandbox"
)

// Failure is a failure caused by the packages or their inputs. A retry would fail again.
type Failure = sandbox.Failure

// Executor runs packages in separate processes that call Serve.
type Executor struct{ sandbox.Server }

// maxAnswerBytes bounds a process's answer, below the tracker's limit of a result.
const maxAnswerBytes = 6 << 20

// Try starts a process that runs nothing. It returns why packages cannot run.
func (e *Executor) Try(ctx context.Context) error {
	_, err := e.Run(ctx, Request{}, Limits{})
	return err
}

// Run runs packages in a process and returns their result. The error is a Failure, the cause of ctx, or a
// fault of the machine. The request's paths must be absolute; other users are allowed to read the files.
func (e *Executor) Run(ctx context.Context, r Request, limits Limits) (*Result, error) {
	limits = limits.withDefaults()
	classes, err := target.Classes()
	if err != nil {
		return nil, fmt.Errorf("run packages: %w", err)
	}
	p := e.Open()
	defer p.Close()
	o := order{Request: r, Classes: classes}
	p.Give(os.OpenFile(cmp.Or(r.Outputs, os.DevNull), os.O_WRONLY, 0))
	for range r.Packages {
		o.Objects = append(o.Objects, p.GiveTemporary("object-*.so"))
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("run packages: %w", err)
	}
	said, err := e.Server.Run(ctx, p, text, o.files(), sandbox.RequestLimits{
		Time: limits.Time, Processors: target.Processors(), Remedy: "allow more time, or ask for fewer executions",
		MemoryBytes: limits.MemoryBytes, FileBytes: limits.OutputBytes, AnswerBytes: maxAnswerBytes,
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, new(*Failure)):
		return nil, sandbox.Failed("%s", agent.FailureMessage(err.Error()))
	default:
		return nil, fmt.Errorf("run packages: %w", err)
	}
	if result, err := readAnswer(said, r); result != nil || err != nil {
		return result, err
	}
	return nil, sandbox.Failed("%s", agent.FailureMessage(p.Crash().Error()))
}

// fits reports whether a result, which packages may have forged, matches a request.
func (r *Result) fits(request Request) bool {
	if r == nil || len(r.Packages) != len(request.Packages) {
		return false
	}
	return !slices.ContainsFunc(r.Packages, func(p PackageResult) bool {
		return len(p.Samples) != request.Repeat || slices.ContainsFunc(p.Samples, func(seconds float64) bool { return seconds < 0 })
	})
}
