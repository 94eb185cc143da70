package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// shapeResolver determines the input shapes from the model and the user's settings. A symbol, the model's name for
// an open extent, denotes the same extent everywhere.
type shapeResolver struct {
	infos   []*onnx.ValueInfo
	symbols map[string]symbol
	// derived holds expressions of symbols, by name.
	derived map[string]string
}

// symbol is the value of an extent with a name, and the user setting that determined it.
type symbol struct {
	extent extent.Extent
	by     string
}

// axisName returns the name of an input's axis: that in the model, or the input's name and the number of the axis. It
// returns "" for a fixed extent.
func axisName(info *onnx.ValueInfo, axis int) string {
	switch d := info.Shape[axis]; {
	case d.Value >= 0:
		return ""
	case d.Param != "":
		return d.Param
	}
	return fmt.Sprintf("%s.%d", info.Name, axis)
}

// resolveShapes returns the shapes of the inputs, and adds the symbols of open extents to a set.
func resolveShapes(infos []*onnx.ValueInfo, given Given, set *extent.Set) ([]extent.Shape, error) {
	r := &shapeResolver{infos: infos, symbols: map[string]symbol{}, derived: given.Derived}
	for _, s := range given.Open {
		if err := r.known(s.Name); err != nil {
			return nil, err
		}
		r.symbols[s.Name] = symbol{set.Add(s), s.Name}
	}
	for _, name := range slices.Sorted(maps.Keys(given.Shapes)) {
		if err := r.fix(name, given.Shapes[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given.Derived)) {
		if err := r.derive(name); err != nil {
			return nil, err
		}
	}
	shapes := make([]extent.Shape, len(infos))
	open := false
	for k, info := range infos {
		if info.Kind != "" {
			return nil, fmt.Errorf("input %q is a %s: only tensors are supported", info.Name, info.Kind)
		}
		if info.DType == array.Invalid {
			return nil, fmt.Errorf("input %q has an element type that is not supported", info.Name)
		}
		shape, ok := r.shape(info, given.Shapes)
		if open = open || !ok; !ok {
			continue
		}
		if _, err := array.CheckedBytes(info.DType, shape.Max()); err != nil {
			return nil, fmt.Errorf("input %q cannot have shape %v", info.Name, shape)
		}
		shapes[k] = shape
	}
	if open {
		return nil, r.openError(given.Shapes)
	}
	return shapes, nil
}

// fix applies the user's setting for one name.
func (r *shapeResolver) fix(name string, shape []int64) error {
	k := slices.IndexFunc(r.infos, func(info *onnx.ValueInfo) bool { return info.Name == name })
	if k >= 0 {
		return r.fixInput(r.infos[k], shape)
	}
	if err := r.known(name); err != nil {
		return err
	}
	if len(shape) != 1 {
		return fmt.Errorf("%q is the open extent of an axis and cannot be %s: give one number", name, extents(shape))
	}
	return r.bind(name, extent.Of(shape[0]), name)
}

// derive sets a symbol to the value of its expression.
func (r *shapeResolver) derive(name string) error {
	text := r.derived[name]
	if slices.ContainsFunc(r.infos, func(info *onnx.ValueInfo) bool { return info.Name == name }) {
		return fmt.Errorf("%q is an input and cannot be %s: give the extent of an axis, such as %s.0=%s", name, text, name, text)
	}
	if err := r.known(name); err != nil {
		return err
	}
	e, err := r.expression(text, len(r.derived))
	switch {
	case err != nil:
		return fmt.Errorf("%s=%s: %w", name, text, err)
	case e.Min() < 0:
		return fmt.Errorf("%s=%s: it may be %d", name, text, e.Min())
	}
	return r.bind(name, e, text)
}

// expression returns the value of an expression of symbols, whose own expressions are nested at most so deep.
func (r *shapeResolver) expression(text string, depth int) (extent.Extent, error) {
	return extent.Parse(text, func(name string) (extent.Extent, error) {
		if s, ok := r.symbols[name]; ok {
			return s.extent, nil
		}
		if nested, ok := r.derived[name]; ok {
			if depth <= 1 {
				return extent.Extent{}, fmt.Errorf("%s depends on itself", name)
			}
			return r.expression(nested, depth-1)
		}
		if err := r.known(name); err != nil {
			return extent.Extent{}, err
		}
		return extent.Extent{}, fmt.Errorf("%q is open: give it a number or bounds", name)
	})
}

// known checks that a name is that of an open extent.
func (r *shapeResolver) known(name string) error {
	for _, info := range r.infos {
		for axis := range info.Shape {
			if n := axisName(info, axis); n == name && n != "" || isPartOf(n, name) {
				return nil
			}
		}
	}
	for _, text := range r.derived {
		if isPartOf(text, name) {
			return nil
		}
	}
	return fmt.Errorf("no input or open extent %q: the model's inputs are %s", name, r.describe(r.infos))
}

// isPartOf reports whether an axis has an expression for a name in which a symbol occurs.
func isPartOf(expression, symbol string) bool {
	found := false
	_, _ = extent.Parse(expression, func(name string) (extent.Extent, error) {
		found = found || name == symbol
		return extent.Of(1), nil
	})
	return found
}

func (r *shapeResolver) fixInput(info *onnx.ValueInfo, shape []int64) error {
	if info.HasShape && len(shape) != len(info.Shape) {
		remedy := ""
		if len(info.Shape) == 0 && len(shape) == 1 {
			remedy = fmt.Sprintf(": if it is a value, give it by --set %s=%d", info.Name, shape[0])
		}
		return fmt.Errorf("input %s has rank %d and cannot take shape %s%s", r.describe([]*onnx.ValueInfo{info}), len(info.Shape), extents(shape), remedy)
	}
	for k, d := range info.Shape {
		switch {
		case d.Value >= 0 && d.Value != shape[k]:
			return fmt.Errorf("input %q has extent %d at axis %d and cannot take shape %s", info.Name, d.Value, k, extents(shape))
		case d.Value < 0:
			if err := r.bind(axisName(info, k), extent.Of(shape[k]), info.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// bind sets the value of a symbol; it must not change.
func (r *shapeResolver) bind(name string, e extent.Extent, by string) error {
	before, ok := r.symbols[name]
	if ok && before.extent != e {
		return fmt.Errorf("open extent %q would be %v for %q and %v for %q: it must be the same everywhere", name, before.extent, before.by, e, by)
	}
	if !ok {
		r.symbols[name] = symbol{e, by}
	}
	return nil
}

// shape returns an input's shape; false if an extent is still open.
func (r *shapeResolver) shape(info *onnx.ValueInfo, given map[string][]int64) (shape extent.Shape, ok bool) {
	if shape, ok := given[info.Name]; ok {
		return extent.Fixed(slices.Clone(shape)...), true
	}
	if !info.HasShape {
		return shape, false
	}
	all := make([]extent.Extent, len(info.Shape))
	for k, d := range info.Shape {
		all[k] = extent.Of(d.Value)
		if d.Value >= 0 {
			continue
		}
		if all[k], ok = r.extent(axisName(info, k)); !ok {
			return shape, false
		}
	}
	return extent.ShapeOf(all...), true
}

// extent returns the extent for a name, which may be an expression of others, as in "past + 1"; false if it is open
// still, or not an extent in all executions.
func (r *shapeResolver) extent(name string) (extent.Extent, bool) {
	if s, ok := r.symbols[name]; ok {
		return s.extent, true
	}
	e, err := r.expression(name, 1)
	return e, err == nil && e.Min() >= 0
}

// openError names the inputs with open extents and the missing settings: symbols if every open extent has one, or
// shapes.
func (r *shapeResolver) openError(given map[string][]int64) error {
	var open []*onnx.ValueInfo
	var say []string
	for _, info := range r.infos {
		if _, ok := r.shape(info, given); ok {
			continue
		}
		open = append(open, info)
		for _, word := range r.missing(info) {
			if !slices.Contains(say, word) {
				say = append(say, word)
			}
		}
	}
	return fmt.Errorf("open extents in input %s: fix them, for example by --shape %s", r.describe(open), strings.Join(say, ","))
}

// missing returns an example of a setting that fixes an input's open extents.
func (r *shapeResolver) missing(info *onnx.ValueInfo) (words []string) {
	if !info.HasShape {
		return []string{info.Name + "=1x3x224x224"}
	}
	whole := make([]int64, len(info.Shape))
	named := true
	for k, d := range info.Shape {
		e, bound := r.extent(axisName(info, k))
		if d.Value >= 0 {
			e, bound = extent.Of(d.Value), true
		}
		if whole[k] = max(1, e.Max()); bound {
			continue
		}
		named = named && d.Param != ""
		words = append(words, d.Param+"=1")
	}
	if named {
		return words
	}
	return []string{info.Name + "=" + extents(whole)}
}

// describe lists inputs with their shapes, e.g. `"data" (batch x 3 x data.2 x data.3)`.
func (r *shapeResolver) describe(infos []*onnx.ValueInfo) string {
	list := make([]string, len(infos))
	for k, info := range infos {
		var dims []string
		for axis, d := range info.Shape {
			dims = append(dims, cmp.Or(axisName(info, axis), fmt.Sprint(d.Value)))
		}
		shape := strings.Join(dims, " x ")
		switch {
		case !info.HasShape:
			shape = "of no shape"
		case len(dims) == 0:
			shape = "scalar"
		}
		list[k] = fmt.Sprintf("%q (%s)", info.Name, shape)
	}
	return strings.Join(list, ", ")
}

func extents(shape []int64) string {
	list := make([]string, len(shape))
	for k, e := range shape {
		list[k] = fmt.Sprint(e)
	}
	return strings.Join(list, "x")
}
