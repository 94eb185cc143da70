package lower

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// FillPack computes the packed buffer from the constant, which has the shape of Workload's. The result equals that
// of Workload, whose expressions are evaluated element by element; FillPack runs at memory speed.
func FillPack(p ir.Pack, constant *array.Array) *array.Array {
	source := constant
	if p.Transform != nil {
		source = p.Transform.Compute(constant)
	}
	f := &filler{dims: p.Dims, source: source, packed: array.New(source.DType, PackShape(p.Dims, source.Shape)...)}
	f.strides = make([]int64, len(source.Shape))
	stride := int64(1)
	for d := len(source.Shape) - 1; d >= 0; d-- {
		f.strides[d] = stride
		stride *= source.Shape[d]
	}
	f.at = make([]int64, len(source.Shape))
	if len(p.Dims) == 0 {
		copy(f.packed.Data, source.Data)
		return f.packed
	}
	f.fill(0, 0)
	return f.packed
}

// filler copies elements into a packed layout.
type filler struct {
	dims           []schedule.PackDim
	source, packed *array.Array
	strides        []int64
	// at is the current position in the source.
	at []int64
}

// fill writes the part of the layout from dimension k inward that starts at element first.
func (f *filler) fill(k int, first int64) {
	d, extent := f.dims[k], f.packed.Shape[k]
	step := int64(1)
	if d.Factor > 0 && !d.Inner {
		step = d.Factor
	}
	if k == len(f.dims)-1 {
		f.row(d.Dim, step, extent, first)
		return
	}
	begin, inside := f.at[d.Dim], array.Elements(f.packed.Shape[k+1:])
	for n := range extent {
		f.at[d.Dim] = begin + n*step
		f.fill(k+1, first+n*inside)
	}
	f.at[d.Dim] = begin
}

// row writes the innermost dimension; elements beyond the source stay zero.
func (f *filler) row(dim int, step, extent, first int64) {
	from := int64(0)
	for d, x := range f.at {
		if x >= f.source.Shape[d] {
			return
		}
		from += x * f.strides[d]
	}
	size := f.source.DType.Bytes()
	within := min(extent, (f.source.Shape[dim]-f.at[dim]-1)/step+1)
	stride := step * f.strides[dim]
	if stride == 1 {
		copy(f.packed.Data[first*size:], f.source.Data[from*size:(from+within)*size])
		return
	}
	for n := range within {
		element := (from + n*stride) * size
		copy(f.packed.Data[(first+n)*size:], f.source.Data[element:element+size])
	}
}
