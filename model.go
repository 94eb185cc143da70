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

// ErrClosed is the error of calls on a model that was closed.
var ErrClosed = errors.New("the model is closed")

// Model is a package that was loaded. Its methods may be called by many goroutines: executions come one after another.
// Load a package several times for executions at the same time.
type Model struct {
	model *aot.Model
	// turn holds a token, which whoever uses the model takes.
	turn   chan struct{}
	closed bool
}

// Options say how a model is loaded. The zero value is what Load does.
type Options struct {
	// Threads is how many threads run the model, at most those that it was compiled for; 0 is that many, or one for
	// each of CPUs if those are fewer. Outputs do not depend on it. Packages for GPUs pass over it.
	Threads int
	// CPUs are the processors that these threads may run on, by the system's numbers; none = all that the program may
	// use, or, where Threads is 0 and cores are of several classes, those of the class that the package is for.
	CPUs []int
	// VerifyKey is a public key of minisign, as text: the package must be signed with it (tilth sign), and have its
	// signature beside it. What is loaded is a copy in memory of what was verified. Empty = no signature
	// is needed: a program whose key comes from elsewhere has to refuse an empty one itself.
	VerifyKey string
}

// Spec describes an input or an output.
type Spec struct {
	Name string
	Type Type
	// Shape has the largest extents: on the axes of Varying, an execution may have fewer.
	Shape []int64
	// Varying are the axes whose extent the inputs of an execution decide, or, of an output, the data.
	Varying []int
	// Kept says, of an input, that Decode leaves it as the execution before has made it.
	Kept bool

	text string
}

// String is the type and the shape, e.g. f32[1 3 224 224], or i64[1 sequence] with the name of an extent.
func (s Spec) String() string { return s.text }

// Extent is a number that the shapes of an execution's inputs decide, such as the length of a sequence.
type Extent struct {
	Name string
	// Least and Most are its bounds, inclusive.
	Least, Most int64
}

// Load opens a package on the threads that it was compiled for. The file must not change while the model is open: its
// weights are used where they lie. An error is one line; it names the file and the remedy.
func Load(path string) (*Model, error) { return LoadWith(path, Options{}) }

// LoadWith is Load with options.
func LoadWith(path string, o Options) (*Model, error) {
	loader, err := aot.Here()
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

// Name is the model's.
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

// Extents are those that the shapes of inputs decide; none in most packages.
func (m *Model) Extents() []Extent {
	var list []Extent
	for _, e := range m.model.Manifest().Extents {
		list = append(list, Extent{Name: e.Name, Least: e.Least, Most: e.Most})
	}
	return list
}

// Decoder reports whether Decode can go on where an execution ended.
func (m *Model) Decoder() bool { return m.model.Manifest().Decoding != nil }

// Run executes the model once. Every input must be there, in any order, of its type and of a shape that it can have.
// The outputs come in the model's order; they are copies. When ctx ends while the model is busy, Run returns its
// cause; an execution that has begun is not interrupted.
func (m *Model) Run(ctx context.Context, inputs []Tensor) ([]Tensor, error) {
	return m.execute(ctx, inputs, m.model.SetInputs)
}

// Decode is Run for a decoder, from where its last execution ended: it keeps the keys and values of all positions so
// far, whose inputs (Spec.Kept) are left out. Others who run the model between two calls change where it ended.
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

// take waits for the model's turn, unless it is closed.
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

// Threads is how many threads run the model; 1 on a GPU, and 0 once it is closed.
func (m *Model) Threads() int {
	if m.take(context.Background()) != nil {
		return 0
	}
	defer m.give()
	return m.model.Threads()
}

// Close waits for the execution that is under way, ends the model's threads and frees its memory. Closing again does
// nothing.
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
