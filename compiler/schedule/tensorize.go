package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Format is the operand format of matrix instructions.
type Format uint8

// The formats. All of them accumulate in 32 bits.
const (
	// TF32 rounds float32 elements to 11 significant bits. It takes 16-bit elements, which have no more, unchanged.
	TF32 Format = iota
	// TF32Compensated adds to TF32 the products with the rounding remainder of each element. It is nearly as
	// accurate as float32, with three times as many instructions.
	TF32Compensated
	// BF16 and F16 take elements of these types unchanged. BF16 also rounds float32 elements to 8 significant bits.
	BF16
	F16
	// I8 takes signed or unsigned 8-bit integers.
	I8
	// The Warpgroup formats are for instructions of a warpgroup, which read elements directly from shared memory.
	// They truncate float32 to TF32.
	WarpgroupTF32
	WarpgroupBF16
	WarpgroupF16
	WarpgroupI8
	// The Tile formats are for CPU instructions that multiply tiles: registers of 16 rows of 64 bytes each.
	TileBF16
	TileF16
	TileI8
)

// format holds the properties of a Format.
type format struct {
	name string
	// takes lists the element types that need no rounding; rounds is the type that is rounded.
	takes  []array.DType
	rounds array.DType
	// packed is the number of elements in a 32-bit register.
	packed int64
	// unit is the kind of matrix unit.
	unit unit
}

// unit is a kind of matrix unit.
type unit uint8

const (
	warp unit = iota
	warpgroup
	tiles
)

var formats = [...]format{
	TF32:            {"tf32", []array.DType{array.Float16, array.BFloat16}, array.Float32, 1, warp},
	TF32Compensated: {"compensated tf32", nil, array.Float32, 1, warp},
	BF16:            {"bf16", []array.DType{array.BFloat16}, array.Float32, 2, warp},
	F16:             {"f16", []array.DType{array.Float16}, array.Invalid, 2, warp},
	I8:              {"i8", integers8, array.Invalid, 4, warp},
	WarpgroupTF32:   {"warpgroup tf32", nil, array.Float32, 1, warpgroup},
	WarpgroupBF16:   {"warpgroup bf16", []array.DType{array.BFloat16}, array.Invalid, 2, warpgroup},
	WarpgroupF16:    {"warpgroup f16", []array.DType{array.Float16}, array.Invalid, 2, warpgroup},
	WarpgroupI8:     {"warpgroup i8", integers8, array.Invalid, 4, warpgroup},
	TileBF16:        {"tile bf16", []array.DType{array.BFloat16}, array.Invalid, 2, tiles},
	TileF16:         {"tile f16", []array.DType{array.Float16}, array.Invalid, 2, tiles},
	TileI8:          {"tile i8", integers8, array.Invalid, 4, tiles},
}

var integers8 = []array.DType{array.Int8, array.Uint8}

// String returns the format's name.
func (f Format) String() string { return formats[f].name }

// Warpgroup reports whether the format is for warpgroup instructions.
func (f Format) Warpgroup() bool { return formats[f].unit == warpgroup }

// Extents of a tile, a CPU register that holds a matrix: sums have 16 columns of 32 bits, and operands as many
// groups of Format.Packed neighbours as fit into a row.
const (
	TileRows     = 16
	TileRowBytes = 64
	TileColumns  = TileRowBytes / 4
	// TileRegisters is the number of tile registers.
	TileRegisters = 8
)

// Tile reports whether the format is for CPU tile instructions.
func (f Format) Tile() bool { return formats[f].unit == tiles }

// Packed returns the number of elements in a 32-bit register.
func (f Format) Packed() int64 { return formats[f].packed }

// Terms returns the number of terms that an instruction adds up.
func (f Format) Terms() int64 {
	if f.Tile() {
		return 16 * f.Packed()
	}
	return 8 * f.Packed()
}

// Holds reports whether the format represents all values of a type.
func (f Format) Holds(d array.DType) bool { return slices.Contains(formats[f].takes, d) }

// Takes reports whether elements of a type can be converted to the format, with or without rounding.
func (f Format) Takes(d array.DType) bool {
	return f.Holds(d) || d != array.Invalid && formats[f].rounds == d
}

// Sum returns the accumulator type.
func (f Format) Sum() array.DType {
	switch f {
	case I8, WarpgroupI8, TileI8:
		return array.Int32
	}
	return array.Float32
}

// roundedFormats describes the formats that round float32 as algorithms: the required level of numerics, and the
// error growth relative to float32. Element errors are 2^12 and 2^15 times those of float32. But there is one error
// per factor, while tolerances allow for one per summation step.
var roundedFormats = map[Format]algorithm{
	// Each product lacks that of the two remainders, and each remainder the bits beyond its precision.
	TF32Compensated: {"compensated TF32", Default, 4, 1},
	TF32:            {"TF32", Fast, 1 << 9, 1},
	BF16:            {"BF16", Fast, 1 << 12, 1},
	// Truncation has twice the error of rounding, and is biased.
	WarpgroupTF32: {"truncated TF32", Fast, 1 << 11, 1},
}

// Tensorize computes the terms of a leaf of a sum of products, and the loops inside it, by matrix instructions that
// are distributed over the threads of a warp (Format.Terms terms, 16 by 8 results). In warpgroup formats, 128
// threads compute 64 by 16, 32, 64, 128 or 256 results, of which warp w has rows 16w to 16w + 15, from swizzled
// operands in shared memory. Within a block of 16 by 8 results, thread t of the warp must hold rows t/4 and t/4 +
// 8, or any other two, and two adjacent columns that depend on t%4. Each operand element belongs to either a row or
// a column. In tile formats, one CPU thread computes: the terms of a row are contiguous, those of a column come in
// groups of Format.Packed neighbours, next to the group of the next column, and sums stay where they are computed.
// Other loop structures, and too few remaining terms, fall back to plain arithmetic, which is slow but correct.
func (s *Schedule) Tensorize(stageID, iterID int, f Format) error {
	if int(f) >= len(formats) {
		return fmt.Errorf("tensorize: %d is not a format", f)
	}
	var exact bool
	err := s.annotate("tensorize", stageID, iterID, Matrices, func(g *Stage, it *Iter) error {
		a, b, product := Factors(g.Body)
		switch {
		case !it.Reduce || g.Combiner != expr.Sum || !product:
			return fmt.Errorf("iterator %d of stage %d is not of a sum of products", iterID, stageID)
		case g.Tensor.DType != f.Sum() || !f.Takes(a.DType()) || !f.Takes(b.DType()):
			return fmt.Errorf("stage %d multiplies %v by %v and adds in %v, for which %v is not the format", stageID, a.DType(), b.DType(), g.Tensor.DType, f)
		case anyLimited(g.Reduce...):
			return fmt.Errorf("a reduction axis of stage %d is open", stageID)
		}
		it.Format, exact = f, f.Holds(a.DType()) && f.Holds(b.DType())
		return nil
	}, int(f))
	if how, lossy := roundedFormats[f]; err == nil && lossy && !exact {
		s.algorithms = append(s.algorithms, how)
	}
	return err
}

// Matrices returns the format of the schedule's matrix instructions, if any.
func (s *Schedule) Matrices() (f Format, has bool) {
	for _, g := range s.Stages {
		for _, it := range g.Leaves {
			if it.Kind == Matrices {
				return it.Format, true
			}
		}
	}
	return 0, false
}

// Factors returns the factors of a product, without casts to its type; ok is false for other expressions.
func Factors(e expr.Expr) (a, b *expr.Load, ok bool) {
	n, isBinary := e.(*expr.Binary)
	if !isBinary || n.Op != expr.Mul {
		return nil, nil, false
	}
	a, okA := ElementOf(n.A)
	b, okB := ElementOf(n.B)
	return a, b, okA && okB
}

// ElementOf returns a load, possibly inside a cast.
func ElementOf(e expr.Expr) (*expr.Load, bool) {
	if c, ok := e.(*expr.Cast); ok {
		e = c.A
	}
	l, ok := e.(*expr.Load)
	return l, ok
}
