package aot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Format is the version of the package format; this code reads versions from oldestFormat on. Packages without
// dynamic extents have the older version closedFormat, and those whose extents have no steps unitFormat.
const (
	Format       = 6
	unitFormat   = 5
	closedFormat = 3
	oldestFormat = 2
)

func formatOf(p *program.Program) int {
	switch {
	case slices.ContainsFunc(p.Extents, func(e program.Extent) bool { return e.Step > 1 }):
		return Format
	case len(p.Extents) > 0:
		return unitFormat
	}
	return closedFormat
}

// Manifest describes a package.
type Manifest struct {
	Format int            `json:"format"`
	Model  string         `json:"model"`
	Target *target.Target `json:"target"`
	// Prefix is the package's own name in C; empty for none.
	Prefix string `json:"prefix,omitempty"`
	// Extents lists the extents that each execution chooses.
	Extents []Extent `json:"extents,omitempty"`
	// Decoding describes how an execution continues the last one; nil if it does not.
	Decoding *Decoding `json:"decoding,omitempty"`
	// Inputs and Outputs are in the model's order.
	Inputs  []Tensor `json:"inputs"`
	Outputs []Tensor `json:"outputs"`
	// Tasks lists the kernels and their schedules.
	Tasks []TaskInfo `json:"tasks"`
	// Calls lists the kernel calls in order.
	Calls []CallInfo `json:"calls"`
	// ArenaBytes is the memory for values and scratch; ArenaLowerBoundBytes is the peak memory in use.
	ArenaBytes           int64 `json:"arena_bytes"`
	ArenaLowerBoundBytes int64 `json:"arena_lower_bound_bytes"`
	// WeightsBytes is the size of weights.bin.
	WeightsBytes int64 `json:"weights_bytes"`
	// C is set for an archive of C source, and describes its requirements.
	C *CSource `json:"c,omitempty"`
	// Weights describes the weights that the compiler quantised; nil if quantisation was off.
	Weights *Weights `json:"weights,omitempty"`
	// Accuracy is the accuracy of the outputs as measured at compile time; nil if it was not measured.
	Accuracy *Accuracy `json:"accuracy,omitempty"`
	// Provenance describes the inputs of the package; nil in packages of older versions.
	Provenance *Provenance `json:"provenance,omitempty"`
	// Members lists the other files of the package.
	Members []Member `json:"members"`
}

// Provenance identifies the inputs of a package and its compiler. The C compiler is part of the manifest's target,
// and records are part of its tasks.
type Provenance struct {
	// ModelSHA256 is the digest of the model's files (onnx.Model.Digest).
	ModelSHA256 string `json:"model_sha256,omitempty"`
	// ModelData lists the external files with tensor data.
	ModelData []DataFile `json:"model_data,omitempty"`
	// Tilth and Commit identify the program that compiled the package.
	Tilth  string `json:"tilth"`
	Commit string `json:"commit,omitempty"`
	// Numerics is the level that schedules were allowed.
	Numerics string `json:"numerics"`
	// DeviceClass and Target are those of the schedules; records of other targets are not used.
	DeviceClass string `json:"device_class"`
	Target      string `json:"target"`
}

// DataFile is an external file of a model (onnx.DataFile).
type DataFile struct {
	// Name is relative to the model's directory, with slashes.
	Name   string `json:"name"`
	Bytes  int64  `json:"size_bytes"`
	SHA256 string `json:"sha256"`
}

// Record identifies the measurement of a schedule, among those of its workload and the package's target.
type Record struct {
	// Key is the record's key in lower-case hex, and Candidate the digest of its trace.
	Key       string `json:"key"`
	Candidate string `json:"candidate"`
	// MeasuredAt is the time of measurement, by RFC 3339 in UTC.
	MeasuredAt string `json:"measured_at"`
}

// Tensor is an input or an output.
type Tensor struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	// OpenAxes lists the output axes with data-dependent extents; Shape has their maximum.
	OpenAxes []int `json:"open_axes,omitempty"`
	// Varying lists the axes with extents chosen by an execution; the memory layout is that of Shape.
	Varying []Varying `json:"varying,omitempty"`
	// Continues is the input that shares the start of an output's memory; empty for none.
	Continues string `json:"continues,omitempty"`
}

// Extent is a bounded extent that each execution chooses.
type Extent struct {
	Name string `json:"name"`
	Min  int64  `json:"least"`
	Max  int64  `json:"most"`
	// Step divides the extent; zero means one.
	Step int64 `json:"step,omitempty"`
}

// Decoding names the extents of a decoder: the kept positions of the past, and those of an execution.
type Decoding struct {
	Past string `json:"past"`
	Step string `json:"step"`
}

// Varying gives the extent of an axis as Times * Extent / Step + Plus, with the step of the extent, or a sum of
// several such terms.
type Varying struct {
	Axis   int    `json:"axis"`
	Extent string `json:"extent"`
	Times  int64  `json:"times"`
	Plus   int64  `json:"plus,omitempty"`
	step   int64
}

// Type returns the element type; array.Invalid for an unknown name.
func (t Tensor) Type() array.DType { return array.ParseDType(t.DType) }

// Shown returns the outputs with their shapes in an execution.
func (m *Manifest) Shown(outputs map[string]*array.Array) []Tensor {
	list := slices.Clone(m.Outputs)
	for k, t := range list {
		list[k] = Tensor{Name: t.Name, DType: t.DType, Shape: outputs[t.Name].Shape}
	}
	return list
}

// Weights describes the storage of a model's float weights.
type Weights struct {
	// Type is "int8", with a scale per channel, or "int4", with a scale per 32 weights of a channel.
	Type string `json:"type"`
	// Quantised is the number of matrices and tables of that type, out of All; the others are unchanged.
	Quantised int `json:"quantised"`
	All       int `json:"all"`
}

// Accuracy is the deviation of outputs from strict numerics on given inputs.
type Accuracy struct {
	// Numerics is the level that the package was compiled with.
	Numerics string `json:"numerics"`
	// RelativeErrors maps each output to the largest difference of an element, relative to the largest element.
	RelativeErrors map[string]float64 `json:"relative_errors"`
}

// Worst returns the output with the largest error, and its error.
func (a *Accuracy) Worst() (output string, relative float64) {
	for _, name := range slices.Sorted(maps.Keys(a.RelativeErrors)) {
		if e := a.RelativeErrors[name]; output == "" || e > relative {
			output, relative = name, e
		}
	}
	return output, relative
}

// TaskInfo is one kernel.
type TaskInfo struct {
	Name     string `json:"name"`
	Workload string `json:"workload"`
	Trace    string `json:"trace"`
	// Origin is the source of the schedule, e.g. "tuned" or "default".
	Origin string `json:"origin"`
	// LatencySeconds is the latency measured during tuning; 0 if none.
	LatencySeconds float64 `json:"latency_s,omitempty"`
	// FormerLatencySeconds is its name in packages of older versions; 0 after a manifest is read.
	FormerLatencySeconds float64 `json:"latency_seconds,omitempty"`
	// Record identifies the record of the schedule; nil if none exists, and in packages of older versions.
	Record *Record `json:"record,omitempty"`
	// Algorithms lists the algorithms other than direct sums, e.g. "F(4x4,3x3)" of Winograd.
	Algorithms []string `json:"algorithms,omitempty"`
	// Multiplications is a lower bound for the multiplications, relative to direct sums; 0 in packages of older
	// versions.
	Multiplications float64 `json:"multiplications,omitempty"`
	// Matrices is the operand format of matrix instructions, e.g. "bf16"; empty for none.
	Matrices string `json:"matrices,omitempty"`
	// Kernel describes the task's user kernel; nil if a schedule computes the task.
	Kernel *OwnKernel `json:"kernel,omitempty"`
	// RelativeError is the largest difference from direct sums measured during tuning, relative to the largest
	// value; 0 if not measured.
	RelativeError float64 `json:"relative_error,omitempty"`
	// Flop is the number of floating-point operations of one execution with direct sums, IntegerOps that of integer
	// sums, Bytes the minimum memory traffic.
	Flop       float64 `json:"flop"`
	IntegerOps float64 `json:"integer_ops,omitempty"`
	Bytes      int64   `json:"bytes"`
	// Extents holds the named extents to which these three refer, if they depend on an execution's choice. Definition
	// is then the workload's text, from which those for other extents follow; empty in packages of older versions.
	Extents    map[string]int64 `json:"extents,omitempty"`
	Definition string           `json:"definition,omitempty"`
}

// CallInfo is one execution of a kernel.
type CallInfo struct {
	// Name lists the model's nodes that are computed.
	Name string `json:"name"`
	// Task is an index in Tasks.
	Task int `json:"task"`
	// Variants are alternatives for small extents: the first one whose extents are not exceeded runs instead.
	Variants []CallVariant `json:"variants,omitempty"`
	// Counts names the extents of the workload's counts, in the order of its inputs.
	Counts []string `json:"counts,omitempty"`
	// Repeats is the number of times that an execution makes the call, by named extents as in "(steps - 1)"; empty for
	// one, and "?" if it depends on data.
	Repeats string `json:"repeats,omitempty"`
}

// CallVariant is a kernel for limited extents.
type CallVariant struct {
	Task int              `json:"task"`
	UpTo map[string]int64 `json:"up_to"`
}

// Flop returns the floating-point operations of one execution of the model with direct sums.
func (m *Manifest) Flop() (total float64) {
	maxima := m.withMaxima(nil)
	for _, c := range m.Calls {
		total += m.Tasks[c.Task].Flop * float64(c.repeats(maxima))
	}
	return total
}

// Member is a file of the package.
type Member struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"size_bytes"`
	// SHA256 identifies the content; CRC32C is checked at every load, at the speed of reading the weights.
	SHA256 string `json:"sha256"`
	CRC32C uint32 `json:"crc32c"`
}

const (
	// maxManifestValues limits the values of a manifest. Models with a thousand kernels have some ten thousand.
	maxManifestValues = 1 << 18
	// maxManifestTensors limits the inputs, outputs and extents, which are compared with each other.
	maxManifestTensors = 4096
)

// DecodeManifest reads and checks a manifest.
func DecodeManifest(data []byte) (*Manifest, error) {
	// An element of a list takes a byte of text and hundreds in memory.
	if n := bytes.Count(data, []byte(",")); n > maxManifestValues {
		return nil, fmt.Errorf("%s has %d commas, more than the limit of %d", manifestName, n, maxManifestValues)
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, fmt.Errorf("%s is not valid: %w", manifestName, err)
	}
	if version.Format < oldestFormat || version.Format > Format {
		return nil, fmt.Errorf("its format is version %d, this program reads versions %d to %d; compile the model again", version.Format, oldestFormat, Format)
	}
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s is not valid: %w", manifestName, err)
	}
	for k := range m.Tasks {
		t := &m.Tasks[k]
		t.LatencySeconds, t.FormerLatencySeconds = cmp.Or(t.LatencySeconds, t.FormerLatencySeconds), 0
	}
	m.addSteps()
	return m, m.check()
}

func (m *Manifest) check() error {
	if m.Target == nil {
		return fmt.Errorf("%s names no target", manifestName)
	}
	if err := m.Target.Check(); err != nil {
		return fmt.Errorf("%s: %w", manifestName, err)
	}
	if n := len(m.Inputs) + len(m.Outputs) + len(m.Extents); n > maxManifestTensors {
		return fmt.Errorf("%s has %d inputs, outputs and extents, more than the limit of %d", manifestName, n, maxManifestTensors)
	}
	for _, t := range append(append([]Tensor{}, m.Inputs...), m.Outputs...) {
		if t.Type() == array.Invalid {
			return fmt.Errorf("%s: tensor %q has unknown type %q", manifestName, t.Name, t.DType)
		}
		if _, err := array.CheckedBytes(t.Type(), t.Shape); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", manifestName, t.Name, err)
		}
		for _, axis := range t.OpenAxes {
			if axis < 0 || axis >= len(t.Shape) {
				return fmt.Errorf("%s: tensor %q of rank %d has an open axis %d", manifestName, t.Name, len(t.Shape), axis)
			}
		}
		if err := m.checkVarying(t); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", manifestName, t.Name, err)
		}
	}
	if err := m.checkContinued(); err != nil {
		return fmt.Errorf("%s: %w", manifestName, err)
	}
	for _, c := range m.Calls {
		tasks := []int{c.Task}
		for _, v := range c.Variants {
			tasks = append(tasks, v.Task)
		}
		for _, task := range tasks {
			if task < 0 || task >= len(m.Tasks) {
				return fmt.Errorf("%s: call %q is of task %d of %d", manifestName, c.Name, task, len(m.Tasks))
			}
		}
	}
	return nil
}

// runsHere returns an error if the package cannot run on a machine.
func (m *Manifest) runsHere(machine *target.Target) error {
	if m.Target.Arch() != machine.Arch() {
		return fmt.Errorf("it was compiled for %s, this machine is %s; compile the model for this machine", m.Target.Arch(), machine.Arch())
	}
	if missing := m.Target.Lacks(machine); len(missing) > 0 {
		return fmt.Errorf("it needs %s, which this processor lacks; compile the model for this machine", strings.Join(missing, ", "))
	}
	return nil
}
