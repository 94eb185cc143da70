package tilth

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/internal/signing"
)

// ErrClosed is returned by calls on a closed model.
var ErrClosed = errors.New("the model is closed")

// Model is a loaded package. It is safe for concurrent use; executions are serialised. Load a package several
// times for concurrent executions.
type Model struct {
	model *aot.Model
	// turn holds a token that the current user of the model takes.
	turn   chan struct{}
	closed bool
}

// Options configures the loading of a model. The zero value is used by Load.
type Options struct {
	// Threads is the number of threads, at most that of the compilation; 0 means that number, or one per
	// element of CPUs if these are fewer. It does not affect outputs. Packages for GPUs ignore it.
	Threads int
	// CPUs lists the processors of these threads, by the system's numbers. Empty means all that the program
	// may use or, if Threads is 0 and the machine has several core classes, those of the package's class.
	CPUs []int
	// VerifyKey is a minisign public key, as text, that must have signed the package (tilth sign); the
	// signature must be beside it. The loaded data are a verified copy in memory. Empty disables
	// verification; a program with a configurable key must reject an empty one itself.
	VerifyKey string
}

// Spec describes an input or an output.
type Spec struct {
	Name string
	Type Type
	// Shape holds the maximum extents. Executions may have smaller ones on the axes in Varying.
	Shape []int64
	// Varying lists the axes whose extent depends on the inputs of an execution or, for outputs, on the data.
	Varying []int
	// Kept is set for an input that Decode takes from the previous execution.
	Kept bool

	text string
}

// String formats the type and the shape, such as f32[1 3 224 224], or i64[1 sequence] with a named extent.
func (s Spec) String() string { return s.text }

// Extent is a number determined by the shapes of an execution's inputs, such as the length of a sequence.
type Extent struct {
	Name string
	// Least and Most are inclusive bounds.
	Least, Most int64
	// Step divides the number and its bounds.
	Step int64
}

// Load opens a package with the number of threads that it was compiled for. The file must not change while the model
// is open, because its weights are mapped. Errors have one line, which names the file and the remedy.
func Load(path string) (*Model, error) { return LoadWith(path, Options{}) }

// LoadWith is Load with options.
func LoadWith(path string, o Options) (*Model, error) {
	loader, err := aot.HostLoader()
	if err != nil {
		return nil, fmt.Errorf("loading package %s: %w", path, err)
	}
	loader.Threads = aot.Threads{Count: o.Threads, CPUs: o.CPUs}
	if o.VerifyKey != "" {
		key, err := signing.ParsePublicKey(o.VerifyKey)
		if err != nil {
			return nil, fmt.Errorf("loading package %s: %w", path, err)
		}
		loader.Key = &key
	}
	loaded, err := loader.Load(path)
	if err != nil {
		return nil, err
	}
	m := &Model{model: loaded, turn: make(chan struct{}, 1)}
	m.turn <- struct{}{}
	return m, nil
}

// Name returns the model's name.
func (m *Model) Name() string { return m.model.Manifest().Model }

// Inputs describes the inputs, in the model's order.
func (m *Model) Inputs() []Spec {
	fresh := m.model.Manifest().Fresh()
	list := specs(m.model.Manifest().Inputs)
	for k := range list {
		list[k].Kept = !slices.ContainsFunc(fresh, func(t aot.Tensor) bool { return t.Name == list[k].Name })
	}
	return list
}

// Outputs describes the outputs, in the model's order.
func (m *Model) Outputs() []Spec { return specs(m.model.Manifest().Outputs) }

// Extents returns the extents determined by the shapes of inputs; most packages have none.
func (m *Model) Extents() []Extent {
	var list []Extent
	for _, e := range m.model.Manifest().Extents {
		list = append(list, Extent{Name: e.Name, Least: e.Min, Most: e.Max, Step: max(e.Step, 1)})
	}
	return list
}

// Decoder reports whether the model supports Decode.
func (m *Model) Decoder() bool { return m.model.Manifest().Decoding != nil }

// Run executes the model once. inputs must contain every input, in any order, with its type and a valid
// shape. The outputs are copies in the model's order. If ctx ends while the model is busy, Run returns its
// cause; a started execution is not interrupted.
func (m *Model) Run(ctx context.Context, inputs []Tensor) ([]Tensor, error) {
	return m.execute(ctx, inputs, m.model.SetInputs)
}

// Decode continues a decoder from its last execution: the keys and values of all positions so far are kept,
// and their inputs (Spec.Kept) are omitted. Other executions between two calls change this state.
func (m *Model) Decode(ctx context.Context, inputs []Tensor) ([]Tensor, error) {
	return m.execute(ctx, inputs, m.model.Continue)
}

func (m *Model) execute(ctx context.Context, inputs []Tensor, set func(map[string]*array.Array) error) ([]Tensor, error) {
	arrays, err := byName(inputs)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", m.Name(), err)
	}
	if err := m.take(ctx); err != nil {
		return nil, fmt.Errorf("model %s: %w", m.Name(), err)
	}
	defer m.give()
	if err := set(arrays); err != nil {
		return nil, err
	}
	if err := m.model.Execute(); err != nil {
		return nil, err
	}
	return m.outputs(), nil
}

func (m *Model) outputs() []Tensor {
	results := m.model.Outputs()
	var list []Tensor
	for _, t := range m.model.Manifest().Outputs {
		a := results[t.Name]
		list = append(list, Tensor{Name: t.Name, Type: Type(a.DType), Shape: a.Shape, Data: a.Data})
	}
	return list
}

// take waits for the model's turn. It fails if the model is closed.
func (m *Model) take(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-m.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if m.closed {
		m.give()
		return ErrClosed
	}
	return nil
}

func (m *Model) give() { m.turn <- struct{}{} }

// Threads returns the number of threads; 1 on a GPU, and 0 after Close.
func (m *Model) Threads() int {
	if m.take(context.Background()) != nil {
		return 0
	}
	defer m.give()
	return m.model.Threads()
}

// Close waits for the current execution, ends the model's threads and frees its memory. Further calls have no effect.
func (m *Model) Close() error {
	if m.take(context.Background()) != nil {
		return nil
	}
	defer m.give()
	m.closed = true
	return m.model.Close()
}

func byName(inputs []Tensor) (map[string]*array.Array, error) {
	arrays := map[string]*array.Array{}
	for _, t := range inputs {
		if _, twice := arrays[t.Name]; twice {
			return nil, fmt.Errorf("input %q is given twice", t.Name)
		}
		arrays[t.Name] = t.array()
	}
	return arrays, nil
}

func specs(tensors []aot.Tensor) []Spec {
	list := make([]Spec, len(tensors))
	for k, t := range tensors {
		list[k] = Spec{Name: t.Name, Type: Type(t.Type()), Shape: slices.Clone(t.Shape), text: t.String()}
		for axis := range t.Shape {
			varies := slices.ContainsFunc(t.Varying, func(v aot.Varying) bool { return v.Axis == axis })
			if varies || slices.Contains(t.OpenAxes, axis) {
				list[k].Varying = append(list[k].Varying, axis)
			}
		}
	}
	return list
}
