package aot

import (
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

// Format is the version of the package format; this code reads those from oldestFormat on. A package without extents
// that executions choose has an older version, closedFormat.
const (
	Format       = 5
	closedFormat = 3
	oldestFormat = 2
)

func formatOf(p *program.Program) int {
	if len(p.Extents) > 0 {
		return Format
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
	// Extents are those that each execution chooses.
	Extents []Extent `json:"extents,omitempty"`
	// Decoding says how one execution goes on where the last one ended; nil where none does.
	Decoding *Decoding `json:"decoding,omitempty"`
	// Inputs and Outputs are in the model's order.
	Inputs  []Tensor `json:"inputs"`
	Outputs []Tensor `json:"outputs"`
	// Tasks are the kernels and the schedules they were compiled with.
	Tasks []TaskInfo `json:"tasks"`
	// Calls are the kernels' executions in order.
	Calls []CallInfo `json:"calls"`
	// ArenaBytes is the memory for values and scratch; ArenaLowerBoundBytes is the most that is in use at a time.
	ArenaBytes           int64 `json:"arena_bytes"`
	ArenaLowerBoundBytes int64 `json:"arena_lower_bound_bytes"`
	// WeightsBytes is the size of weights.bin.
	WeightsBytes int64 `json:"weights_bytes"`
	// C is set for an archive of C source, and says what it takes.
	C *CSource `json:"c,omitempty"`
	// Weights says which weights the compiler has put into integers; nil where it was not asked to.
	Weights *Weights `json:"weights,omitempty"`
	// Accuracy is what was measured of the outputs when the package was made; nil when nothing was.
	Accuracy *Accuracy `json:"accuracy,omitempty"`
	// Provenance says what the package was made of; nil in packages of older versions.
	Provenance *Provenance `json:"provenance,omitempty"`
	// Members are the other files of the package.
	Members []Member `json:"members"`
}

// Provenance says what a package was made of, and by what. The compiler is part of the manifest's target, and records
// are part of its tasks.
type Provenance struct {
	// ModelSHA256 is the digest of the model's files (onnx.Model.Digest).
	ModelSHA256 string `json:"model_sha256,omitempty"`
	// ModelData are the files beside the model's that have data of its tensors.
	ModelData []DataFile `json:"model_data,omitempty"`
	// Tilth and Commit are those of the program that compiled the package.
	Tilth  string `json:"tilth"`
	Commit string `json:"commit,omitempty"`
	// Numerics is the level that schedules were allowed.
	Numerics string `json:"numerics"`
	// DeviceClass and Target are those that the schedules are for; records of other targets are not used.
	DeviceClass string `json:"device_class"`
	Target      string `json:"target"`
}

// DataFile is a file beside a model's (onnx.DataFile).
type DataFile struct {
	// Name is relative to the model's folder, with slashes.
	Name   string `json:"name"`
	Bytes  int64  `json:"size_bytes"`
	SHA256 string `json:"sha256"`
}

// Record names the measurement that a schedule comes from, among those of its workload and the package's target.
type Record struct {
	// Key is the record's, in lower-case hex, and Candidate the digest of its trace.
	Key       string `json:"key"`
	Candidate string `json:"candidate"`
	// MeasuredAt is when it was measured, by RFC 3339 in UTC.
	MeasuredAt string `json:"measured_at"`
}

// Tensor is an input or an output.
type Tensor struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	// OpenAxes are those on which the extent of an output depends on data; Shape has the largest that it can be.
	OpenAxes []int `json:"open_axes,omitempty"`
	// Varying are the axes whose extent an execution chooses; elements lie as in a tensor of Shape.
	Varying []Varying `json:"varying,omitempty"`
	// Continues is the input in whose memory an output lies, which is its beginning; empty for none.
	Continues string `json:"continues,omitempty"`
}

// Extent is a number of elements that each execution chooses, within bounds.
type Extent struct {
	Name  string `json:"name"`
	Least int64  `json:"least"`
	Most  int64  `json:"most"`
}

// Decoding names the extents of a decoder: the positions that came before, which it keeps, and those of an execution.
type Decoding struct {
	Past string `json:"past"`
	Step string `json:"step"`
}

// Varying says that a tensor has on an axis Times * Extent + Plus elements, or the sum of several such.
type Varying struct {
	Axis   int    `json:"axis"`
	Extent string `json:"extent"`
	Times  int64  `json:"times"`
	Plus   int64  `json:"plus,omitempty"`
}

// Type is the element type; array.Invalid when there is none of that name.
func (t Tensor) Type() array.DType { return array.ParseDType(t.DType) }

// Shown are the outputs with the shapes that they have in an execution.
func (m *Manifest) Shown(outputs map[string]*array.Array) []Tensor {
	list := slices.Clone(m.Outputs)
	for k, t := range list {
		list[k] = Tensor{Name: t.Name, DType: t.DType, Shape: outputs[t.Name].Shape}
	}
	return list
}

// Weights says what weights of a model in floats are kept as.
type Weights struct {
	// Type is "int8", with a scale for each channel, or "int4", with a scale for each 32 weights of a channel.
	Type string `json:"type"`
	// Quantised is how many of the matrices and tables are of that type, of All; the others are as they were.
	Quantised int `json:"quantised"`
	All       int `json:"all"`
}

// Accuracy is how far outputs were from those of strict numerics, on inputs that were given.
type Accuracy struct {
	// Numerics is the level that the package was compiled with.
	Numerics string `json:"numerics"`
	// RelativeErrors are by output: the largest difference of an element, relative to the largest element.
	RelativeErrors map[string]float64 `json:"relative_errors"`
}

// Worst is the output that is furthest off, and its error.
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
	// Origin says where the schedule comes from, e.g. "tuned" or "default".
	Origin string `json:"origin"`
	// LatencySeconds is what was measured when it was tuned; 0 = nothing.
	LatencySeconds float64 `json:"latency_s,omitempty"`
	// FormerLatencySeconds is its name in packages of older versions; 0 once a manifest was read.
	FormerLatencySeconds float64 `json:"latency_seconds,omitempty"`
	// Record is the record that the schedule comes from; nil of others, and in packages of older versions.
	Record *Record `json:"record,omitempty"`
	// Algorithms are those that the schedule uses beside direct sums, e.g. "F(4x4,3x3)" of Winograd.
	Algorithms []string `json:"algorithms,omitempty"`
	// Multiplications are at least those of the algorithms, as a share of those of direct sums; 0 in packages of older
	// versions.
	Multiplications float64 `json:"multiplications,omitempty"`
	// Matrices is the format of the factors that a device's instructions for matrices multiply, e.g. "bf16"; empty
	// where there are none.
	Matrices string `json:"matrices,omitempty"`
	// Kernel is the kernel that somebody wrote for the task; nil where a schedule computes it.
	Kernel *OwnKernel `json:"kernel,omitempty"`
	// RelativeError is the largest difference from the direct sums that was measured when it was tuned, relative to
	// the largest value; 0 = not measured.
	RelativeError float64 `json:"relative_error,omitempty"`
	// Flop is the floating point operations of one execution if every sum is computed directly, IntegerOps those of
	// sums of integers, Bytes the least that it reads and writes.
	Flop       float64 `json:"flop"`
	IntegerOps float64 `json:"integer_ops,omitempty"`
	Bytes      int64   `json:"bytes"`
	// Extents are those that the three are of, by name, where they depend on what an execution chooses. Definition is
	// the workload's text there, from which they follow for others; empty in packages of older versions.
	Extents    map[string]int64 `json:"extents,omitempty"`
	Definition string           `json:"definition,omitempty"`
}

// CallInfo is one execution of a kernel.
type CallInfo struct {
	// Name has the model's nodes that are computed.
	Name string `json:"name"`
	// Task is an index in Tasks.
	Task int `json:"task"`
	// Variants are run instead where extents are small: the first whose extents are not exceeded.
	Variants []CallVariant `json:"variants,omitempty"`
	// Counts are the names of the extents that the workload's counts are, in the order of its inputs.
	Counts []string `json:"counts,omitempty"`
}

// CallVariant is a kernel for extents up to some.
type CallVariant struct {
	Task int              `json:"task"`
	UpTo map[string]int64 `json:"up_to"`
}

// Flop is the floating point operations of one execution of the model if every sum is computed directly.
func (m *Manifest) Flop() (total float64) {
	for _, c := range m.Calls {
		total += m.Tasks[c.Task].Flop
	}
	return total
}

// Member is a file of the package.
type Member struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"size_bytes"`
	// SHA256 identifies the content; CRC32C is the check made at every load, which reads weights at memory speed.
	SHA256 string `json:"sha256"`
	CRC32C uint32 `json:"crc32c"`
}

// decodeManifest reads and checks a manifest.
func decodeManifest(data []byte) (*Manifest, error) {
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
	return m, m.check()
}

func (m *Manifest) check() error {
	if m.Target == nil {
		return fmt.Errorf("%s names no target", manifestName)
	}
	if err := m.Target.Check(); err != nil {
		return fmt.Errorf("%s: %w", manifestName, err)
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

// runsHere says why the package cannot run on a machine, if so.
func (m *Manifest) runsHere(machine *target.Target) error {
	if m.Target.Arch() != machine.Arch() {
		return fmt.Errorf("it was compiled for %s, this machine is %s; compile the model for this machine", m.Target.Arch(), machine.Arch())
	}
	if missing := m.Target.Lacks(machine); len(missing) > 0 {
		return fmt.Errorf("it needs %s, which this processor lacks; compile the model for this machine", strings.Join(missing, ", "))
	}
	return nil
}
