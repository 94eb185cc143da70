package jobclient

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/wire"
)

// Source is a model to tune.
type Source struct {
	// Name is used in the job's name.
	Name string
	// Model is the result of onnx.ReadFile. It is not modified.
	Model *onnx.Model
	// Shapes sets open dimensions, by input or symbol name. Open sets the bounds of symbols that stay open.
	// Derived sets others as expressions of symbols.
	Shapes  map[string][]int64
	Open    map[string]frontend.Bounds
	Derived map[string]string
	// Weight is the weight of the model relative to others; 0 means 1.
	Weight float64
}

// Objective is the quantity that a job minimises: the weighted latency of the tasks of some models.
type Objective struct {
	// Name combines the names of the models.
	Name  string
	Tasks []Task
	// Storage is the storage type of factors.
	Storage array.Storage
	// Open is an extent that stays open, or "".
	Open string

	names  []string
	models []Model
}

// Add adds a model's program with a weight.
func (o *Objective) Add(name string, p *program.Program, weight float64) {
	o.names = append(o.names, name)
	o.models = append(o.models, Model{Tasks: p.Tasks, Weight: weight})
	o.Name, o.Tasks = wire.Label(strings.Join(o.names, "+")), Join(o.models...)
	for _, e := range p.Extents {
		o.Open = e.Name
	}
}

// Suits returns why the objective cannot be tuned for a target, or nil.
func (o *Objective) Suits(t *target.Target) error {
	switch {
	case len(o.Tasks) == 0:
		return fmt.Errorf("%s: it computes nothing, so there is nothing to tune", strings.Join(o.names, ", "))
	case t != nil && !t.SupportsOpenExtents() && o.Open != "":
		return fmt.Errorf("%s cannot stay open for a GPU: fix its extent", o.Open)
	}
	return nil
}

// Load returns the objective for a target, whose programs may store factors in its preferred type. It may be
// called with a nil target to detect invalid models before a device is chosen.
type Load func(t *target.Target) (*Objective, error)

// Models returns a Load function for parsed models, with programs that use what a numerics level allows. bits
// is the size of integer weights; 0 keeps floats.
func Models(sources []Source, numerics schedule.Numerics, bits int64) Load {
	var last *Objective
	return func(t *target.Target) (*Objective, error) {
		storage := array.Storage{}
		if t != nil {
			var err error
			if storage, err = registry.Storage(t, numerics, array.Invalid); err != nil {
				return nil, err
			}
		}
		if bits != 0 && bits != 4 && bits != 8 {
			return nil, fmt.Errorf("weights of %d bits: want 4 or 8, or 0 for floats", bits)
		}
		storage.WeightBits = bits
		if last == nil || last.Storage != storage {
			loaded, err := Read(sources, storage)
			if err != nil {
				return nil, err
			}
			last = loaded
		}
		return last, last.Suits(t)
	}
}

// storages maps names to storage types; Invalid stands for float32.
var storages = map[string]array.DType{"bfloat16": array.BFloat16, "float16": array.Float16, "float32": array.Invalid}

// Storage returns the storage type for a target: its backend's preference, or a named type with fast
// numerics. bits is the size of integer weights; 0 keeps floats.
func Storage(t *target.Target, numerics schedule.Numerics, name string, bits int64) (array.Storage, error) {
	as, known := storages[name]
	switch {
	case name == "":
	case !known:
		return array.Storage{}, fmt.Errorf("storage %s: want bfloat16, float16 or float32", name)
	case numerics < schedule.Fast:
		return array.Storage{}, fmt.Errorf("storage %s needs fast numerics: other numerics keep float32", name)
	}
	storage, err := registry.Storage(t, numerics, as)
	switch {
	case err != nil:
		return array.Storage{}, err
	case name == "float32":
		storage = array.Storage{Bytes: storage.Bytes}
	case name != "" && storage.Type == array.Invalid:
		return array.Storage{}, fmt.Errorf("storage %s: programs for %s store float32, since it has no instructions for that type", name, t.Fingerprint())
	}
	storage.WeightBits = bits
	return storage, nil
}

// Read returns the objective of parsed models with a storage type.
func Read(sources []Source, storage array.Storage) (*Objective, error) {
	if len(sources) == 0 {
		return nil, errors.New("there is no model to tune")
	}
	o := &Objective{Storage: storage}
	for _, s := range sources {
		if err := o.Import(s); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// Import adds a parsed model with the objective's storage type.
func (o *Objective) Import(s Source) error {
	if s.Model == nil {
		return fmt.Errorf("%s: there is no model", s.Name)
	}
	if !(s.Weight >= 0) || math.IsInf(s.Weight, 0) {
		return fmt.Errorf("%s: its weight is %v: want a number above 0", s.Name, s.Weight)
	}
	p, err := s.program(o.Storage)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	o.Add(s.Name, p, cmp.Or(s.Weight, 1))
	return nil
}

func (s Source) program(storage array.Storage) (*program.Program, error) {
	return frontend.Import(s.Model, frontend.Options{Shapes: s.Shapes, Open: s.Open, Derived: s.Derived, Storage: storage})
}
