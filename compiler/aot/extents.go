package aot

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/program"
)

// checkVarying checks the dynamic axes of a tensor.
func (m *Manifest) checkVarying(t Tensor) error {
	lo, hi := map[int]int64{}, map[int]int64{}
	for _, v := range t.Varying {
		e := m.extent(v.Extent)
		switch {
		case v.Axis < 0 || v.Axis >= len(t.Shape):
			return fmt.Errorf("axis %d of rank %d cannot vary", v.Axis, len(t.Shape))
		case e == nil || e.Min < 0 || e.Max < e.Min || e.Min%e.step() != 0 || e.Max%e.step() != 0:
			return fmt.Errorf("axis %d has extent %q, which has no bounds", v.Axis, v.Extent)
		case v.Times < 1 || v.Plus > t.Shape[v.Axis] || e.Max/e.step() > (t.Shape[v.Axis]-v.Plus)/v.Times:
			return fmt.Errorf("axis %d has not %v elements of at most %d", v.Axis, v, t.Shape[v.Axis])
		}
		lo[v.Axis] += v.elements(e.Min)
		hi[v.Axis] += v.elements(e.Max)
		if hi[v.Axis] > t.Shape[v.Axis] {
			return fmt.Errorf("axis %d has more than %d elements", v.Axis, t.Shape[v.Axis])
		}
	}
	for axis, n := range lo {
		if n < 0 {
			return fmt.Errorf("axis %d has %d elements", axis, n)
		}
	}
	return nil
}

// extent returns the named extent, or nil.
func (m *Manifest) extent(name string) *Extent {
	k := slices.IndexFunc(m.Extents, func(e Extent) bool { return e.Name == name })
	if k < 0 {
		return nil
	}
	return &m.Extents[k]
}

func (e Extent) step() int64 { return max(e.Step, 1) }

// open returns the extent as that of a program, without caps.
func (e Extent) open() program.Extent {
	return program.Extent{Name: e.Name, Step: e.Step, Min: e.Min / e.step(), Max: e.Max / e.step()}
}

// Check returns an error if executions cannot have an extent.
func (e Extent) Check(n int64) error {
	if n < e.Min || n > e.Max || n%e.step() != 0 {
		return fmt.Errorf("the package was compiled for %s", strings.TrimSuffix(e.open().Bounds(), ","))
	}
	return nil
}

// addSteps adds the steps of extents to the axes that vary by them.
func (m *Manifest) addSteps() {
	for _, t := range slices.Concat(m.Inputs, m.Outputs) {
		for k := range t.Varying {
			if e := m.extent(t.Varying[k].Extent); e != nil {
				t.Varying[k].step = e.step()
			}
		}
	}
}

// elements returns the extent of the axis.
func (v Varying) elements(extent int64) int64 { return v.Times*(extent/max(v.step, 1)) + v.Plus }

// String returns the extent of the axis as a formula, e.g. "sequence", "2*sequence+1" or "height/32".
func (v Varying) String() string {
	text, times, step := v.Extent, v.Times, max(v.step, 1)
	if times%step == 0 {
		times, step = times/step, 1
	}
	if step != 1 {
		text = fmt.Sprintf("%s/%d", text, step)
	}
	if times != 1 {
		text = fmt.Sprintf("%d*%s", times, text)
	}
	if v.Plus != 0 {
		text += fmt.Sprintf("%+d", v.Plus)
	}
	return text
}

// ShapeWith returns the shape of an input or output for the named extents.
func (t Tensor) ShapeWith(extents map[string]int64) []int64 {
	shape := slices.Clone(t.Shape)
	for _, v := range t.Varying {
		shape[v.Axis] = 0
	}
	for _, v := range t.Varying {
		shape[v.Axis] += v.elements(extents[v.Extent])
	}
	return shape
}

// ShapeOf returns the shape of an input or output for the named extents; missing ones have their maximum.
func (m *Manifest) ShapeOf(t Tensor, extents map[string]int64) []int64 {
	return t.ShapeWith(m.withMaxima(extents))
}

// withMaxima returns the named extents and the maxima of all others.
func (m *Manifest) withMaxima(extents map[string]int64) map[string]int64 {
	all := map[string]int64{}
	for _, e := range m.Extents {
		all[e.Name] = e.Max
	}
	maps.Copy(all, extents)
	return all
}

// ExtentsOf derives the named extents from the shapes of named inputs. Errors name the input with a wrong shape.
func (m *Manifest) ExtentsOf(shapes map[string][]int64) (map[string]int64, error) {
	list := make([]program.Extent, len(m.Extents))
	for k, e := range m.Extents {
		list[k] = e.open()
	}
	var axes []program.Axis
	for _, t := range m.Inputs {
		shape, given := shapes[t.Name]
		if !given || len(shape) != len(t.Shape) {
			continue // reported separately
		}
		for axis, n := range shape {
			if form := m.form(t, axis); form.Times != nil {
				axes = append(axes, program.Axis{Input: t.Name, Axis: axis, Elements: n, Form: form})
			}
		}
	}
	numbers, err := program.Solve(list, axes)
	if err != nil {
		return nil, err
	}
	extents := map[string]int64{}
	for k, e := range m.Extents {
		extents[e.Name] = list[k].Whole(numbers[k])
	}
	return extents, nil
}

// form returns the extent of an axis; it has no Times if the axis is fixed.
func (m *Manifest) form(t Tensor, axis int) (f program.Form) {
	for _, v := range t.Varying {
		if v.Axis != axis {
			continue
		}
		if f.Times == nil {
			f.Times = make([]int64, len(m.Extents))
		}
		f.Times[slices.IndexFunc(m.Extents, func(e Extent) bool { return e.Name == v.Extent })] += v.Times
		f.Plus += v.Plus
	}
	return f
}

// Extents returns the named extents of the current inputs.
func (m *Model) Extents() map[string]int64 { return maps.Clone(m.extents) }

// checkExtents rejects code that does not support the extents of its manifest.
func (m *Model) checkExtents() error {
	if len(m.manifest.Extents) == 0 {
		return nil
	}
	other := fmt.Errorf("%s and %s do not belong together; compile the model again", objectName, manifestName)
	known := m.api.setExtent != nil && m.api.extentCount != nil && m.api.extentName != nil
	if !known || int(m.api.extentCount()) != len(m.manifest.Extents) {
		return other
	}
	for k, e := range m.manifest.Extents {
		if m.api.extentName(int32(k)) != e.Name {
			return other
		}
		if !slices.ContainsFunc(m.manifest.Inputs, func(t Tensor) bool {
			return slices.ContainsFunc(t.Varying, func(v Varying) bool { return v.Extent == e.Name })
		}) {
			return fmt.Errorf("%s: no input determines %s", manifestName, e.Name)
		}
	}
	return m.setExtents(nil)
}

// setExtents sets the extents of later executions; missing ones have their maximum.
func (m *Model) setExtents(extents map[string]int64) error {
	m.extents = m.manifest.withMaxima(extents)
	var errs error
	for k, e := range m.manifest.Extents {
		if n := m.extents[e.Name]; m.api.setExtent(m.handle, int32(k), n) != 0 {
			errs = errors.Join(errs, fmt.Errorf("%s cannot be %d", e.Name, n))
		}
	}
	return errs
}
