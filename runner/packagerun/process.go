package packagerun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/sandbox"
)

// Request describes what to run and which results to return.
type Request struct {
	// Packages lists the package files. Several are loaded together and timed in turns.
	Packages []Package `json:"packages"`
	// Inputs is an archive of arrays by input name; empty means random data.
	Inputs string `json:"inputs,omitempty"`
	// Outputs is the file for the outputs of the first package's first execution; empty means none.
	Outputs string `json:"outputs,omitempty"`
	// Repeat is the number of timed samples of Number executions each per package; 0 disables timing.
	Repeat int `json:"repeat,omitempty"`
	Number int `json:"number,omitempty"`
	// Profile is the number of executions whose kernel calls are timed, for the first package; 0 disables profiling.
	Profile int `json:"profile,omitempty"`
}

// order is a request with information that the process cannot obtain itself.
type order struct {
	Request
	// Classes lists the core classes of the machine. Packages must match the first.
	Classes []target.Class `json:"classes"`
	// Objects lists files for the packages' code, which the process inherits open for writing.
	Objects []string `json:"objects"`
}

// Additional descriptors of the process.
const (
	outputsDescriptor = 3
	firstObject       = 4
)

// files returns all files that the process sees by name.
func (o order) files() []string {
	files := slices.Clone(o.Objects)
	for _, p := range o.Packages {
		files = append(files, p.Path)
	}
	if o.Inputs != "" {
		files = append(files, o.Inputs)
	}
	return files
}

// Limits of a request.
const (
	maxPackages = 64
	maxTurns    = 1 << 20
)

// readOrder decodes the order.
func readOrder(r io.Reader) (*order, error) {
	o := &order{}
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(o); err != nil {
		return nil, err
	}
	if n := len(o.Packages); n != len(o.Objects) || n > maxPackages {
		return nil, fmt.Errorf("%d packages, more than the limit of %d, and %d files for their code", n, maxPackages, len(o.Objects))
	}
	for _, n := range []int{o.Repeat, o.Number, o.Profile} {
		if n < 0 || n > maxTurns {
			return nil, fmt.Errorf("%d executions, more than the limit of %d", n, maxTurns)
		}
	}
	return o, nil
}

// Package is a package file and its name in messages.
type Package struct {
	Path string `json:"path"`
	Name string `json:"name"`
}

// Result holds the results of all packages.
type Result struct {
	Packages []PackageResult `json:"packages"`
}

// PackageResult is the result of one package.
type PackageResult struct {
	// Samples holds the seconds per execution, in the order taken.
	Samples []float64 `json:"samples,omitempty"`
	// Profile is a profile.Profile; nil unless requested.
	Profile json.RawMessage `json:"profile,omitempty"`
	// Manifest is an aot.Manifest without tasks, calls and members.
	Manifest json.RawMessage `json:"manifest"`
}

// answer is the process's response, on one line.
type answer struct {
	Result *Result `json:"result,omitempty"`
	// Error is why the packages cannot be run, caused by them or by the inputs.
	Error string `json:"error,omitempty"`
}

// readAnswer decodes a response that may be forged. It returns nil without an error for a response to another request.
func readAnswer(said []byte, r Request) (*Result, error) {
	var a answer
	if err := json.Unmarshal(said, &a); err != nil {
		return nil, nil
	}
	if a.Error != "" {
		return nil, sandbox.Failed("%s", agent.FailureMessage(a.Error))
	}
	if !a.Result.fits(r) {
		return nil, nil
	}
	return a.Result, nil
}

// Limits restricts the process. Zero values mean the defaults.
type Limits struct {
	// Time is the wall-clock limit, including loading; by default 10 min.
	Time time.Duration
	// MemoryBytes limits the memory; by default unlimited.
	MemoryBytes int64
	// OutputBytes limits each written file: the outputs and the packages' code; by default 1 GiB.
	OutputBytes int64
}

func (l Limits) withDefaults() Limits {
	l.Time = cmp.Or(l.Time, 10*time.Minute)
	l.OutputBytes = cmp.Or(l.OutputBytes, 1<<30)
	return l
}

// RandomInputs returns pseudo-random inputs, always the same: uniform in [-1, 1), rounded to the input's type, or zero
// for types that are not floating-point. Devices may be faster with zeros than with other numbers.
//
// Open extents are taken from extents by name, or else have their maximum.
func RandomInputs(manifest *aot.Manifest, extents map[string]int64) map[string]*array.Array {
	rng := rand.New(rand.NewPCG(1, 0))
	inputs := map[string]*array.Array{}
	for _, t := range manifest.Inputs {
		shape := manifest.ShapeOf(t, extents)
		values := array.New(t.Type(), shape...)
		if t.Type().IsFloat() {
			data := make([]float32, array.Elements(shape))
			for i := range data {
				data[i] = rng.Float32()*2 - 1
			}
			values = array.FromFloat32(data, shape...).As(t.Type())
		}
		inputs[t.Name] = values
	}
	return inputs
}

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
