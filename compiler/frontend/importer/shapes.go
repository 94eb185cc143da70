package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// shapeResolver determines the input shapes from the model and the user's settings. A symbol, the model's name for
// an open extent, denotes the same extent everywhere.
type shapeResolver struct {
	infos   []*onnx.ValueInfo
	symbols map[string]symbol
}

// symbol is the value of an open extent, and the user setting that fixed it.
type symbol struct {
	extent int64
	by     string
}

// resolveShapes returns the shapes of the inputs. A name in given is that of an input, or the symbol of an open
// extent with one number.
func resolveShapes(infos []*onnx.ValueInfo, given map[string][]int64) ([][]int64, error) {
	r := &shapeResolver{infos: infos, symbols: map[string]symbol{}}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := r.fix(name, given[name]); err != nil {
			return nil, err
		}
	}
	shapes := make([][]int64, len(infos))
	open := false
	for k, info := range infos {
		if info.Kind != "" {
			return nil, fmt.Errorf("input %q is a %s: only tensors are supported", info.Name, info.Kind)
		}
		if info.DType == array.Invalid {
			return nil, fmt.Errorf("input %q has an element type that is not supported", info.Name)
		}
		shape, ok := r.shape(info, given)
		if open = open || !ok; !ok {
			continue
		}
		if _, err := array.CheckedBytes(info.DType, shape); err != nil {
			return nil, fmt.Errorf("input %q cannot have shape %v", info.Name, shape)
		}
		shapes[k] = shape
	}
	if open {
		return nil, r.openError(given)
	}
	return shapes, nil
}

// fix applies the user's setting for one name.
func (r *shapeResolver) fix(name string, shape []int64) error {
	k := slices.IndexFunc(r.infos, func(info *onnx.ValueInfo) bool { return info.Name == name })
	if k >= 0 {
		return r.fixInput(r.infos[k], shape)
	}
	for _, info := range r.infos {
		for _, d := range info.Shape {
			if d.Value < 0 && d.Param == name && len(shape) != 1 {
				return fmt.Errorf("%q is the open extent of an axis and cannot be %s: give one number", name, extents(shape))
			}
			if d.Value < 0 && d.Param == name {
				return r.bind(name, shape[0], name)
			}
		}
	}
	return fmt.Errorf("no input or open extent %q: the model's inputs are %s", name, r.describe(r.infos))
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
		case d.Value < 0 && d.Param != "":
			if err := r.bind(d.Param, shape[k], info.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// bind sets the value of a symbol; it must not change.
func (r *shapeResolver) bind(name string, extent int64, by string) error {
	before, ok := r.symbols[name]
	if ok && before.extent != extent {
		return fmt.Errorf("open extent %q would be %d for %q and %d for %q: it must be the same everywhere", name, before.extent, before.by, extent, by)
	}
	if !ok {
		r.symbols[name] = symbol{extent, by}
	}
	return nil
}

// shape returns an input's shape; false if an extent is still open.
func (r *shapeResolver) shape(info *onnx.ValueInfo, given map[string][]int64) ([]int64, bool) {
	if shape, ok := given[info.Name]; ok {
		return slices.Clone(shape), true
	}
	if !info.HasShape {
		return nil, false
	}
	shape := make([]int64, len(info.Shape))
	for k, d := range info.Shape {
		shape[k] = d.Value
		if s, ok := r.symbols[d.Param]; d.Value < 0 && ok && d.Param != "" {
			shape[k] = s.extent
		}
		if shape[k] < 0 {
			return nil, false
		}
	}
	return shape, true
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
		s, bound := r.symbols[d.Param]
		whole[k] = max(1, d.Value, s.extent)
		if d.Value >= 0 || bound {
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

// describe lists inputs with their shapes, e.g. `"data" (batch x 3 x ? x ?)`.
func (r *shapeResolver) describe(infos []*onnx.ValueInfo) string {
	list := make([]string, len(infos))
	for k, info := range infos {
		var dims []string
		for _, d := range info.Shape {
			switch {
			case d.Value >= 0:
				dims = append(dims, fmt.Sprint(d.Value))
			case d.Param != "":
				dims = append(dims, d.Param)
			default:
				dims = append(dims, "?")
			}
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
