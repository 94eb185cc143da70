package tuning

import (
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
	"github.com/tilth-dev/tilth/tuning/job"
)

// Source is a model to tune.
type Source struct {
	// Name is for people: jobs are named after it.
	Name string
	// Model is what onnx.ReadFile reads. It is not changed.
	Model *onnx.Model
	// Shapes fix dimensions that the model leaves open, by the name of an input or of a symbol; Open has bounds within
	// which a symbol stays open.
	Shapes map[string][]int64
	Open   map[string]frontend.Bounds
	// Weight is what one execution of the model counts beside those of others; 0 is 1.
	Weight float64
}

// Objective is what a job minimises: the latency of the tasks of some models together.
type Objective struct {
	// Name is that of the models.
	Name  string
	Tasks []job.Task
	// Storage is how factors of products are stored.
	Storage array.Storage
	// Open is an extent that stays open; empty where all are fixed.
	Open string

	names  []string
	models []job.Model
}

// Add adds a model's program, of which one execution counts weight.
func (o *Objective) Add(name string, p *program.Program, weight float64) {
	o.names = append(o.names, name)
	o.models = append(o.models, job.Model{Tasks: p.Tasks, Weight: weight})
	o.Name, o.Tasks = strings.Join(o.names, "+"), job.Join(o.models...)
	for _, e := range p.Extents {
		o.Open = e.Name
	}
}

// Suits says why the objective cannot be tuned for a target, if so.
func (o *Objective) Suits(t *target.Target) error {
	switch {
	case len(o.Tasks) == 0:
		return fmt.Errorf("%s: it computes nothing, so there is nothing to tune", strings.Join(o.names, ", "))
	case t != nil && t.GPU != nil && o.Open != "":
		return fmt.Errorf("%s cannot stay open for a GPU: fix its extent", o.Open)
	}
	return nil
}

// Load makes the objective for a target, whose programs may store factors of products in a type of its own. It may be
// called without a target, before a device was chosen: what is wrong with a model is found early then.
type Load func(t *target.Target) (*Objective, error)

// Models loads models that were read, whose programs use what a level of numerics allows. bits are those of the
// integers that weights are kept in; 0 = as they are.
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

// storages are the types by which factors may be stored; Invalid leaves them in float32.
var storages = map[string]array.DType{"bfloat16": array.BFloat16, "float16": array.Float16, "float32": array.Invalid}

// Storage is how programs for a target store factors of products: what its backend prefers, or, with fast numerics, in
// a type of a name. bits are those of the integers that weights are kept in; 0 = as they are.
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

// Read is the objective of models that were read, in which factors are stored in a type.
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

// Import adds a model that was read, with factors as the objective stores them.
func (o *Objective) Import(s Source) error {
	if s.Model == nil {
		return fmt.Errorf("%s: there is no model", s.Name)
	}
	if !(s.Weight >= 0) || math.IsInf(s.Weight, 0) {
		return fmt.Errorf("%s: its weight is %v: want a number above 0", s.Name, s.Weight)
	}
	p, err := frontend.Import(s.Model, frontend.Options{Shapes: s.Shapes, Open: s.Open, Storage: o.Storage})
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	weight := s.Weight
	if weight == 0 {
		weight = 1
	}
	o.Add(s.Name, p, weight)
	return nil
}
