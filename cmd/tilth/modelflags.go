package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
)

// modelFlags configures how a model is read.
type modelFlags struct {
	shapes map[string]string
	// values fixes inputs of one element.
	values map[string]string
	// from and to delimit a part of the model by values; empty means the whole model.
	from, to []string
	// stdin provides a model named -.
	stdin func() io.Reader
	// piped is the model read from standard input.
	piped *onnx.Model
	// own holds, by path, the shapes that apply to each model.
	own map[string]map[string]string
	// uncheckedIndices leaves out the checks of inputs that index a dimension.
	uncheckedIndices bool
	// quantised counts the quantised weights, and all weights, of the last model.
	quantised [2]int
	// digest identifies the last model; data lists its external files.
	digest string
	data   []aot.DataFile
}

func (f *modelFlags) add(c *cobra.Command) {
	f.stdin = c.InOrStdin
	c.Flags().StringToStringVar(&f.shapes, "shape", nil, "open dimensions: `name=dims` such as batch=1, data=1x3x64x64, batch=1..8, height=32..640/32 or mask.0=batch")
	c.Flags().StringToStringVar(&f.values, "set", nil, "inputs of one element that become constants: `name=value` such as sr=16000")
	c.Flags().StringSliceVar(&f.from, "from", nil, "use only the part of the model after these `values`, which become inputs")
	c.Flags().StringSliceVar(&f.to, "to", nil, "use only the part of the model that computes these `values`")
}

// load reads an ONNX file and compiles it to a program with a storage type.
func (f *modelFlags) load(path string, storage array.Storage) (*program.Program, error) {
	o, err := f.parse()
	if err != nil {
		return nil, err
	}
	m, err := f.read(path)
	if err != nil {
		return nil, err
	}
	f.digest, f.data = m.Digest, nil
	for _, file := range m.Data {
		f.data = append(f.data, aot.DataFile(file))
	}
	o.UncheckedIndices = f.uncheckedIndices
	o.Storage, f.quantised = storage, [2]int{}
	o.Quantised = func(quantised, all int) { f.quantised = [2]int{quantised, all} }
	return importModel(path, m, o)
}

// read reads a model, or the part of it that the flags select.
func (f *modelFlags) read(path string) (*onnx.Model, error) {
	m, err := f.whole(path)
	if err != nil || f.from == nil && f.to == nil {
		return m, err
	}
	if m, err = m.Part(f.from, f.to); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// whole reads an ONNX file, or standard input once.
func (f *modelFlags) whole(path string) (_ *onnx.Model, err error) {
	if path != stdio {
		m, err := onnx.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: name an ONNX file, or write a test model with 'tilth model'", err)
		}
		return m, err
	}
	if f.piped == nil {
		f.piped, err = onnx.ReadFrom(f.stdin(), "standard input")
	}
	return f.piped, err
}

// modelName returns the name of a model, derived from its file.
func modelName(path string) string {
	if path == stdio {
		return "stdin"
	}
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".onnx")
}

func importModel(path string, m *onnx.Model, o frontend.Options) (*program.Program, error) {
	p, err := frontend.Import(m, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// loadAll reads several models and calls visit with the program of each, compiled with a storage type. A shape applies
// to the models that have an input or symbol of its name, and at least one must.
func (f *modelFlags) loadAll(paths []string, storage array.Storage, visit func(path string, p *program.Program) error) error {
	return f.readAll(paths, func(path string, m *onnx.Model, o frontend.Options) error {
		o.Storage = storage
		p, err := importModel(path, m, o)
		if err != nil {
			return err
		}
		return visit(path, p)
	})
}

// readAll reads models, each with the shapes that apply to it. It rejects shapes that apply to none.
func (f *modelFlags) readAll(paths []string, visit func(path string, m *onnx.Model, o frontend.Options) error) error {
	shapes, err := f.parse()
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, path := range paths {
		m, err := f.read(path)
		if err != nil {
			return err
		}
		own := shapes
		if len(paths) > 1 {
			own = shapesFor(m, shapes)
		}
		f.keep(path, own)
		for name := range f.own[path] {
			used[name] = true
		}
		if err := visit(path, m, own); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.shapes)) {
		if !used[name] {
			return fmt.Errorf("--shape %s: no model has an input or open extent of that name: see 'tilth tasks MODEL'", name)
		}
	}
	return nil
}

// keep records which shapes apply to a model.
func (f *modelFlags) keep(path string, o frontend.Options) {
	if f.own == nil {
		f.own = map[string]map[string]string{}
	}
	f.own[path] = map[string]string{}
	for name, text := range f.shapes {
		_, fixed := o.Shapes[name]
		_, open := o.Open[name]
		_, derived := o.Derived[name]
		if fixed || open || derived {
			f.own[path][name] = text
		}
	}
}

// shapesFor returns the shapes that apply to a model.
func shapesFor(m *onnx.Model, o frontend.Options) frontend.Options {
	own := frontend.Options{Shapes: map[string][]int64{}, Open: map[string]frontend.Bounds{}, Derived: map[string]string{}, Values: map[string]float64{}}
	names := map[string]bool{}
	for _, input := range m.Graph.Inputs {
		names[input.Name] = true
		for axis, dim := range input.Shape {
			names[dim.Param] = true
			names[fmt.Sprintf("%s.%d", input.Name, axis)] = true
			addNames(names, dim.Param)
		}
	}
	for range o.Derived { // each round reaches those that the last one named
		for name, text := range o.Derived {
			if names[name] {
				own.Derived[name] = text
				addNames(names, text)
			}
		}
	}
	for name := range names {
		if shape, given := o.Shapes[name]; given {
			own.Shapes[name] = shape
		}
		if bounds, given := o.Open[name]; given {
			own.Open[name] = bounds
		}
		if value, given := o.Values[name]; given {
			own.Values[name] = value
		}
	}
	return own
}

// addNames adds the names in an expression of extents.
func addNames(names map[string]bool, expression string) {
	_, _ = extent.Parse(expression, func(name string) (extent.Extent, error) {
		names[name] = true
		return extent.Of(1), nil
	})
}

// parse parses the shapes and the values of inputs.
func (f *modelFlags) parse() (o frontend.Options, err error) {
	o.Shapes, o.Open, o.Derived, o.Values = map[string][]int64{}, map[string]frontend.Bounds{}, map[string]string{}, map[string]float64{}
	for name, text := range f.values {
		if o.Values[name], err = strconv.ParseFloat(text, 64); err != nil {
			return o, usagef("--set %s=%s: want a number", name, text)
		}
	}
	for name, text := range f.shapes {
		if lo, hi, isOpen := strings.Cut(text, ".."); isOpen {
			if o.Open[name], err = parseBounds(lo, hi); err != nil {
				return o, usagef("--shape %s=%s: %w", name, text, err)
			}
			continue
		}
		if isExpression(text) {
			o.Derived[name] = text
			continue
		}
		if o.Shapes[name], err = parseShape(text); err != nil {
			return o, usagef("--shape %s=%s: %w", name, text, err)
		}
	}
	return o, nil
}

// isExpression reports whether an extent is given by other names.
func isExpression(text string) bool {
	names := map[string]bool{}
	addNames(names, text)
	return len(names) > 0
}

// parseBounds parses the bounds of an extent. Optional suffixes are a step, after a slash, and after a colon the caps
// of specialised kernels, joined by +, or the name of a file with the frequency of each extent.
func parseBounds(lo, hi string) (b frontend.Bounds, err error) {
	hi, more, _ := strings.Cut(hi, ":")
	hi, step, stepped := strings.Cut(hi, "/")
	if strings.Trim(more, "0123456789+") == "" {
		b.Caps, err = parseCaps(more)
	} else {
		b.Frequencies, err = readFrequencies(more)
	}
	if err != nil {
		return b, err
	}
	if b.Min, err = strconv.ParseInt(lo, 10, 64); err == nil {
		b.Max, err = strconv.ParseInt(hi, 10, 64)
	}
	if err != nil || b.Min < 0 || b.Max <= b.Min {
		return b, fmt.Errorf("want two numbers >= 0, the larger one second, such as 1..512")
	}
	if !stepped {
		return b, nil
	}
	if b.Step, err = strconv.ParseInt(step, 10, 64); err != nil || b.Step < 1 || b.Min%b.Step != 0 || b.Max%b.Step != 0 {
		return b, fmt.Errorf("want a step after the slash that divides both bounds, such as 32..640/32")
	}
	return b, nil
}

// parseShape parses extents joined by x.
func parseShape(text string) ([]int64, error) {
	var shape []int64
	for _, part := range strings.Split(text, "x") {
		extent, err := strconv.ParseInt(part, 10, 64)
		if err != nil || extent < 0 {
			return nil, fmt.Errorf("want extents joined by x, such as 1x3x224x224")
		}
		shape = append(shape, extent)
	}
	return shape, nil
}

// parseCaps parses numbers joined by +, or returns nil for an empty text.
func parseCaps(text string) (caps []int64, err error) {
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, "+") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("want positive numbers joined by +, such as 16+64+128")
		}
		caps = append(caps, n)
	}
	return caps, nil
}

// maxFrequenciesBytes bounds a file of frequencies.
const maxFrequenciesBytes = 16 << 20

// readFrequencies reads how often executions have each extent: lines of "EXTENT COUNT". It skips empty lines
// and lines that begin with #.
func readFrequencies(name string) (map[int64]float64, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > maxFrequenciesBytes {
		return nil, fmt.Errorf("%s: larger than %d MiB: want one line per extent", name, maxFrequenciesBytes>>20)
	}
	found := map[int64]float64{}
	lines := bufio.NewScanner(io.LimitReader(file, maxFrequenciesBytes))
	for k := 1; lines.Scan(); k++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("%s: line %d: want an extent and a count, such as '128 30'", name, k)
		}
		n, err := strconv.ParseInt(words[0], 10, 64)
		count, wrong := strconv.ParseFloat(words[1], 64)
		if err != nil || wrong != nil || n < 1 || !(count > 0) || count > math.MaxInt64 {
			return nil, fmt.Errorf("%s: line %d: want a positive extent and a positive count, such as '128 30'", name, k)
		}
		found[n] += count
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no lines with an extent and a count, such as '128 30'", name)
	}
	return found, nil
}
