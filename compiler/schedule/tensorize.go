package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Format is how instructions that multiply matrices take the elements of their operands.
type Format uint8

// The formats. Sums are of 32 bits in all of them.
const (
	// TF32 rounds elements in float32 to 11 significant bits, and takes those of 16 bits, which have no more, as they
	// are.
	TF32 Format = iota
	// TF32Compensated is TF32, and adds the products with what rounding left of either element: nearly those of
	// float32, in three times as many instructions.
	TF32Compensated
	// BF16 and F16 take elements of these types as they are. BF16 also rounds those in float32, to 8 significant bits.
	BF16
	F16
	// I8 is integers of 8 bits, with a sign or without.
	I8
	// These are for instructions of a warpgroup, which read elements from shared memory as they lie there. Of float32
	// they leave out what TF32 has no room for.
	WarpgroupTF32
	WarpgroupBF16
	WarpgroupF16
	WarpgroupI8
	// These are for instructions of a processor that multiply tiles: registers of 16 rows of 64 bytes each.
	TileBF16
	TileF16
	TileI8
)

// format is what a Format is.
type format struct {
	name string
	// takes are the types of elements that need not be rounded, rounds is the one that is.
	takes  []array.DType
	rounds array.DType
	// packed is how many elements a register of 32 bits has.
	packed int64
	// unit is what has the instructions.
	unit unit
}

// unit is what has instructions that multiply matrices.
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

// String is the format's name.
func (f Format) String() string { return formats[f].name }

// Warpgroup reports whether the instructions are those of a warpgroup.
func (f Format) Warpgroup() bool { return formats[f].unit == warpgroup }

// The extents of a tile, a register of a processor that holds a matrix: sums are of 16 columns of 32 bits, operands of
// as many groups of Format.Packed neighbours as a row has room for.
const (
	TileRows     = 16
	TileRowBytes = 64
	TileColumns  = TileRowBytes / 4
	// TileRegisters is how many tiles there are.
	TileRegisters = 8
)

// Tile reports whether the instructions are those of a processor's tiles.
func (f Format) Tile() bool { return formats[f].unit == tiles }

// Packed is how many elements a register of 32 bits has.
func (f Format) Packed() int64 { return formats[f].packed }

// Terms is how many terms of a sum an instruction takes.
func (f Format) Terms() int64 {
	if f.Tile() {
		return 16 * f.Packed()
	}
	return 8 * f.Packed()
}

// Holds reports whether the format has all values of a type.
func (f Format) Holds(d array.DType) bool { return slices.Contains(formats[f].takes, d) }

// Takes reports whether elements of a type can be had in the format, rounded or not.
func (f Format) Takes(d array.DType) bool {
	return f.Holds(d) || d != array.Invalid && formats[f].rounds == d
}

// Sum is the type of the sums.
func (f Format) Sum() array.DType {
	switch f {
	case I8, WarpgroupI8, TileI8:
		return array.Int32
	}
	return array.Float32
}

// roundedFormats are the formats that lose something of float32, as algorithms: the level of numerics that allows
// them, and how much larger their errors are than those of float32. Errors of an element are 2^12 and 2^15 times those
// of float32, but there is one for each factor, where tolerances are made for one in each step of a sum.
var roundedFormats = map[Format]algorithm{
	// Each product misses that of the two rests, and each rest the bits that it has no room for.
	TF32Compensated: {"compensated TF32", Default, 4, 1},
	TF32:            {"TF32", Fast, 1 << 9, 1},
	BF16:            {"BF16", Fast, 1 << 12, 1},
	// Leaving out is twice as far off as rounding, and always on one side.
	WarpgroupTF32: {"truncated TF32", Fast, 1 << 11, 1},
}

// Tensorize has the terms of a leaf, which is of a sum of products, and the loops inside of it computed by
// instructions that multiply matrices spread over the threads of a warp (Format.Terms of the terms, 16 results by 8).
// In the formats of warpgroups, those of 128 threads: 64 results by 16, 32, 64, 128 or 256, of which warp w has rows
// 16w to 16w + 15, from operands that are swizzled in shared memory. Of the results of a block of 16 by 8, thread t of
// the warp must have rows t/4 and t/4 + 8 or any other two, and two neighbouring columns that depend on t%4; each
// element of either operand belongs to a row or a column alone. In the formats of tiles, those of one thread of a
// processor: the terms of a row lie side by side, those of a column in groups of Format.Packed neighbours, a group
// beside that of the next column, and sums stay where they are computed. Where loops are not like that, or the terms
// left over are fewer, the step is computed by plain arithmetic: that is slow, and never wrong.
func (s *Schedule) Tensorize(stageID, iterID int, f Format) error {
	if int(f) >= len(formats) {
		return fmt.Errorf("tensorize: %d is not a format", f)
	}
	g, it, err := s.leaf(stageID, iterID)
	if err != nil {
		return fmt.Errorf("tensorize: %w", err)
	}
	a, b, product := Factors(g.Body)
	switch {
	case !it.Reduce || g.Combiner != expr.Sum || !product:
		return fmt.Errorf("tensorize: iterator %d of stage %d is not of a sum of products", iterID, stageID)
	case g.Tensor.DType != f.Sum() || !f.Takes(a.DType()) || !f.Takes(b.DType()):
		return fmt.Errorf("tensorize: stage %d multiplies %v by %v and adds in %v, for which %v is not the format",
			stageID, a.DType(), b.DType(), g.Tensor.DType, f)
	case anyLimited(g.Reduce...):
		return fmt.Errorf("tensorize: a reduction axis of stage %d is open", stageID)
	case s.attachedAt(it):
		return fmt.Errorf("tensorize: a stage is computed at iterator %d of stage %d", iterID, stageID)
	}
	if err := s.annotate("tensorize", stageID, iterID, Matrices); err != nil {
		return err
	}
	it.Format = f
	s.steps[len(s.steps)-1].args = append(s.steps[len(s.steps)-1].args, int(f))
	if how, lossy := roundedFormats[f]; lossy && !(f.Holds(a.DType()) && f.Holds(b.DType())) {
		s.algorithms = append(s.algorithms, how)
	}
	return nil
}

// Matrices is the format of the factors that instructions for matrices multiply, if the schedule has such.
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

// Factors are those of a product, without the casts to the type that it is computed in; ok is false for anything else.
func Factors(e expr.Expr) (a, b *expr.Load, ok bool) {
	n, isBinary := e.(*expr.Binary)
	if !isBinary || n.Op != expr.Mul {
		return nil, nil, false
	}
	a, okA := element(n.A)
	b, okB := element(n.B)
	return a, b, okA && okB
}

// element is a load, or the one that is cast.
func element(e expr.Expr) (*expr.Load, bool) {
	if c, ok := e.(*expr.Cast); ok {
		e = c.A
	}
	l, ok := e.(*expr.Load)
	return l, ok
}
