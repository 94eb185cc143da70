package jobclient

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
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

// Weight is the weight of the tasks that a selector picks; see Select.
type Weight struct {
	Weight float64
	Tasks  string
}

// ParseWeights reads a list of lines with a weight and a selector. It skips empty lines and comments after #.
// numbers holds the line number of each weight.
func ParseWeights(list io.Reader) (weights []Weight, numbers []int, err error) {
	lines := bufio.NewScanner(list)
	for number := 1; lines.Scan(); number++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		w, err := parseLine(line)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", number, err)
		}
		weights, numbers = append(weights, w), append(numbers, number)
	}
	return weights, numbers, lines.Err()
}

func parseLine(line string) (w Weight, err error) {
	first, selection, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	if w.Weight, err = ParseWeight(first); err != nil {
		return w, err
	}
	if w.Tasks = strings.TrimSpace(selection); w.Tasks == "" {
		return w, fmt.Errorf("%q names no task: write the weight, a space, and numbers, ranges or parts of names", line)
	}
	return w, nil
}

// WeighError identifies an invalid weight passed to Weigh.
type WeighError struct {
	Index int
	Err   error
}

func (e *WeighError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *WeighError) Unwrap() error { return e.Err }

// Weigh selects tasks and replaces their weights. Each weight must select something, and no task may be
// selected twice; otherwise it returns a *WeighError.
func Weigh(tasks []Task, weights []Weight) ([]Task, error) {
	weighs := map[int]float64{}
	for k, w := range weights {
		picked, err := Select(tasks, w.Tasks)
		if err != nil {
			return nil, &WeighError{k, err}
		}
		for _, t := range picked {
			if _, twice := weighs[t.Index]; twice {
				return nil, &WeighError{k, fmt.Errorf("task %d (%s) has a weight already: name it once", t.Index, t.Name)}
			}
			weighs[t.Index] = w.Weight
		}
	}
	var weighed []Task
	for _, t := range tasks {
		if weight, picked := weighs[t.Index]; picked {
			t.Weight = weight
			weighed = append(weighed, t)
		}
	}
	return weighed, nil
}

// WeighByList is Weigh with a list in the format of ParseWeights. Errors begin with the line number.
func WeighByList(tasks []Task, list io.Reader) ([]Task, error) {
	weights, numbers, err := ParseWeights(list)
	if err != nil {
		return nil, err
	}
	if len(weights) == 0 {
		return nil, errors.New("no task is named: write lines of a weight and a task, such as '2.5 dense'")
	}
	weighed, err := Weigh(tasks, weights)
	if wrong, ok := errors.AsType[*WeighError](err); ok {
		return nil, fmt.Errorf("line %d: %w", numbers[wrong.Index], wrong.Err)
	}
	return weighed, err
}

// ParseWeight parses a weight: a finite positive number.
func ParseWeight(text string) (float64, error) {
	weight, err := strconv.ParseFloat(text, 64)
	if err != nil || !(weight > 0) || math.IsInf(weight, 1) {
		return 0, fmt.Errorf("%q is not a weight: want a number above 0, such as 2.5", text)
	}
	return weight, nil
}

// Select selects tasks by a comma-separated list of numbers (3), ranges (2-5) and parts of names (conv2d). An
// empty list selects all. Every element must select something.
func Select(tasks []Task, selection string) ([]Task, error) {
	if selection == "" {
		return tasks, nil
	}
	picked := map[int]bool{}
	for _, part := range strings.Split(selection, ",") {
		match, err := matcher(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("tasks %q: %w", selection, err)
		}
		found := false
		for i, t := range tasks {
			if match(t) {
				picked[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("tasks %q: no task is %q: see 'tilth tasks MODEL'", selection, part)
		}
	}
	var selected []Task
	for i, t := range tasks {
		if picked[i] {
			selected = append(selected, t)
		}
	}
	return slices.Clip(selected), nil
}

func matcher(part string) (func(Task) bool, error) {
	if part == "" {
		return nil, errors.New("a part is empty: separate numbers, ranges and names with single commas")
	}
	from, to, isRange := strings.Cut(part, "-")
	low, err := strconv.Atoi(from)
	if err != nil {
		return func(t Task) bool { return strings.Contains(t.Name, part) }, nil
	}
	high := low
	if isRange {
		if high, err = strconv.Atoi(to); err != nil || high < low {
			return nil, fmt.Errorf("%q is not a range: write the lower number, a dash, the higher", part)
		}
	}
	return func(t Task) bool { return low <= t.Index && t.Index <= high }, nil
}
