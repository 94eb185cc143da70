package execute

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/agent/failure"
	"github.com/tilth-dev/tilth/internal/sandbox/request"
)

// Failure is the packages' own fault, or that of their inputs: it would come again.
type Failure = request.Failure

// Executor runs packages in processes of their own, which call Serve.
type Executor struct{ request.Server }

// mostAnswerBytes bounds what a process answers: less than a tracker takes of a result.
const mostAnswerBytes = 6 << 20

// Try starts a process that runs nothing. The error says why none can run packages.
func (e *Executor) Try(ctx context.Context) error {
	_, err := e.Run(ctx, Request{}, Limits{})
	return err
}

// Run runs packages in a process and returns what they came to. The error is a Failure, the cause with which ctx
// ended, or the machine's fault. The request's paths are this process's and absolute; others are let read the files.
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
	said, err := e.Server.Run(ctx, p, text, o.files(), request.Limits{
		Time: limits.Time, Processors: target.Processors(), Remedy: "allow more time, or ask for fewer executions",
		MemoryBytes: limits.MemoryBytes, FileBytes: limits.OutputBytes, AnswerBytes: mostAnswerBytes,
	})
	var failed *Failure
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &failed):
		return nil, request.Failed("%s", failure.Message(err.Error()))
	default:
		return nil, fmt.Errorf("run packages: %w", err)
	}
	if result, err := readAnswer(said, r); result != nil || err != nil {
		return result, err
	}
	return nil, request.Failed("%s", failure.Message(p.Crash().Error()))
}

// fits says whether a result, which packages may have forged, is one of a request.
func (r *Result) fits(request Request) bool {
	if r == nil || len(r.Packages) != len(request.Packages) {
		return false
	}
	return !slices.ContainsFunc(r.Packages, func(p PackageResult) bool {
		return len(p.Samples) != request.Repeat || slices.ContainsFunc(p.Samples, func(seconds float64) bool { return seconds < 0 })
	})
}
