package execute

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/agent/failure"
	"github.com/tilth-dev/tilth/internal/sandbox/request"
)

// Request says what to run and what is wanted of it.
type Request struct {
	// Packages are files; several are loaded side by side and timed in turns.
	Packages []Package `json:"packages"`
	// Inputs is an archive of arrays by the names of the inputs; empty = random data.
	Inputs string `json:"inputs,omitempty"`
	// Outputs is where the outputs of the first package's first execution are written; empty = nowhere.
	Outputs string `json:"outputs,omitempty"`
	// Repeat timed samples of Number executions each are taken of every package; 0 = not timed.
	Repeat int `json:"repeat,omitempty"`
	Number int `json:"number,omitempty"`
	// Profile times each kernel call of the first package, the median of so many executions; 0 = not.
	Profile int `json:"profile,omitempty"`
}

// order is a request with what the process cannot see for itself.
type order struct {
	Request
	// Classes are the machine's, of cores: packages must fit the first.
	Classes []target.Class `json:"classes"`
	// Objects are files to unpack packages' code to, which the process finds open for writing.
	Objects []string `json:"objects"`
}

// Descriptors of the process beside those of any.
const (
	outputsDescriptor = 3
	firstObject       = 4
)

// files are all that the process sees by its name.
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

// Bounds of a request.
const (
	mostPackages = 64
	mostTurns    = 1 << 20
)

// readOrder reads what to run.
func readOrder(r io.Reader) (*order, error) {
	o := &order{}
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(o); err != nil {
		return nil, err
	}
	if n := len(o.Packages); n != len(o.Objects) || n > mostPackages {
		return nil, fmt.Errorf("%d packages, more than the limit of %d, and %d files for their code", n, mostPackages, len(o.Objects))
	}
	for _, n := range []int{o.Repeat, o.Number, o.Profile} {
		if n < 0 || n > mostTurns {
			return nil, fmt.Errorf("%d executions, more than the limit of %d", n, mostTurns)
		}
	}
	return o, nil
}

// Package is a package's file, and its name in messages.
type Package struct {
	Path string `json:"path"`
	Name string `json:"name"`
}

// Result has the results of all packages.
type Result struct {
	Packages []PackageResult `json:"packages"`
}

// PackageResult is that of one package.
type PackageResult struct {
	// Samples are seconds of one execution each, in the order taken.
	Samples []float64 `json:"samples,omitempty"`
	// Profile is a profile.Profile; nil unless asked for.
	Profile json.RawMessage `json:"profile,omitempty"`
	// Manifest is an aot.Manifest without tasks, calls and members.
	Manifest json.RawMessage `json:"manifest"`
}

// answer is what the process says, on one line.
type answer struct {
	Result *Result `json:"result,omitempty"`
	// Error says why the packages cannot be run: their own fault, or that of the inputs.
	Error string `json:"error,omitempty"`
}

// readAnswer reads what a process says that may be forged. nil, without an error, is no answer to the request.
func readAnswer(said []byte, r Request) (*Result, error) {
	var a answer
	if err := json.Unmarshal(said, &a); err != nil {
		return nil, nil
	}
	if a.Error != "" {
		return nil, request.Failed("%s", failure.Message(a.Error))
	}
	if !a.Result.fits(r) {
		return nil, nil
	}
	return a.Result, nil
}

// Limits bound the process. Zero values mean the defaults.
type Limits struct {
	// Time is on the wall's clock, loading included; 10 min by default.
	Time time.Duration
	// MemoryBytes bounds the memory; no bound by default.
	MemoryBytes int64
	// OutputBytes bounds each file that is written: the outputs and packages' code; 1 GiB by default.
	OutputBytes int64
}

func (l Limits) withDefaults() Limits {
	if l.Time == 0 {
		l.Time = 10 * time.Minute
	}
	if l.OutputBytes == 0 {
		l.OutputBytes = 1 << 30
	}
	return l
}
