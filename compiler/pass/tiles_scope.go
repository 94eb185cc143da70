package pass

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/x86"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// scope is the region in which the sums of a buffer are computed and used.
type scope struct {
	*tilesPlacer
	in   ir.Allocated
	sums *ir.Buffer
	// spare holds the number of elements that the scope's tiles read beyond the end of each buffer.
	spare map[*expr.Tensor]int64
	// of describes the common shape of all products, layout that of the stored sums.
	of     *tilesProduct
	layout *layout
	// tiles lists the tiles of sums in row-major order.
	tiles []*ir.Buffer
}

// products replaces the loops over matrices of a block; ok is false if one does not match or the block does more.
func (s *scope) products(b ir.Block) (out ir.Block, ok bool) {
	for _, st := range b {
		n, isLoop := st.(*ir.For)
		switch {
		case isLoop && n.Kind == ir.Matrices:
			products, ok := s.product(n)
			if !ok {
				return nil, false
			}
			out = append(out, products...)
		case isLoop && (n.Kind == ir.Serial || n.Kind == ir.Unrolled):
			body, ok := s.products(n.Body)
			if !ok {
				return nil, false
			}
			out = append(out, n.With(body))
		default:
			return nil, false
		}
	}
	return out, true
}

// product returns the instructions of a loop over matrices.
func (s *scope) product(n *ir.For) (ir.Block, bool) {
	p, ok := tilesMatch(n, s.sums, s.in)
	if !ok || !s.has(p.a.tensor.DType) {
		return nil, false
	}
	if s.of == nil {
		if s.layout, ok = layoutOf(s.sums, p); !ok {
			return nil, false
		}
		s.of, s.spare = p, map[*expr.Tensor]int64{}
		for k := range s.layout.tileRows() * s.layout.tileColumns() {
			s.tiles = append(s.tiles, ir.NewTile(int(k), fmt.Sprintf("sums%d", k), s.sums.Tensor.DType))
		}
	}
	if !p.same(s.of) {
		return nil, false
	}
	return s.multiply(p)
}

// multiply loads the operands and accumulates their products. One operand is loaded whole, and the other tile by
// tile into the remaining tiles.
func (s *scope) multiply(p *tilesProduct) (ir.Block, bool) {
	a, okA := s.loads(p.a, "a", s.layout.rowsOf(p.a.steps), s.layout.rowsBeyond()*p.a.rowElements)
	b, okB := s.loads(p.b, "b", s.layout.columnsOf(p.format.Packed()), s.layout.columnsBeyond()*p.format.Packed())
	if !okA || !okB {
		return nil, false
	}
	sum := func(i, j int) *ir.Buffer { return s.tiles[i*len(b)+j] }
	whole, turns, swapped := a, b, false
	if len(s.tiles)+len(a)+1 > schedule.TileRegisters {
		whole, turns, swapped = b, a, true
	}
	free := schedule.TileRegisters - len(s.tiles) - len(whole)
	if free < 1 {
		return nil, false
	}
	var out ir.Block
	for k, l := range whole {
		l.tile.Index = len(s.tiles) + k
		out = append(out, l.load()...)
	}
	for j, l := range turns {
		l.tile.Index = len(s.tiles) + len(whole) + j%free
		out = append(out, l.load()...)
		for i, other := range whole {
			if swapped {
				out = append(out, ir.Exec(p.Instruction, ir.All(sum(j, i)), ir.All(l.tile), ir.All(other.tile)))
			} else {
				out = append(out, ir.Exec(p.Instruction, ir.All(sum(i, j)), ir.All(other.tile), ir.All(l.tile)))
			}
		}
	}
	return out, true
}

// tileLoad is a tile and the rows that fill it.
type tileLoad struct {
	tile *ir.Buffer
	rows ir.Arg
}

// load allocates and fills the tile.
func (l tileLoad) load() ir.Block {
	return ir.Block{&ir.Alloc{Buffer: l.tile}, ir.Exec(x86.TileLoad(l.tile.Tensor.DType), ir.All(l.tile), l.rows)}
}

// loads returns the tiles of an operand at the given offsets. They read up to beyond elements past the last one that
// a sum needs; ok is false if these may lie outside the kernel's memory.
func (s *scope) loads(o tilesOperand, name string, offsets []int64, beyond int64) (list []tileLoad, ok bool) {
	for k, offset := range offsets {
		first := o.first.Plus(expr.Linear{Const: offset}, 1)
		tile := ir.NewTile(0, fmt.Sprintf("%s%d", name, k), o.tensor.DType)
		list = append(list, tileLoad{tile, ir.Arg{Tensor: o.tensor, Index: first.Expr(), Stride: o.rowElements}})
		if _, highest, known := first.Bounds(); known && k == len(offsets)-1 {
			end := highest + (schedule.TileRows-1)*o.rowElements + schedule.TileRowBytes/o.tensor.DType.Bytes()
			beyond = min(beyond, max(0, end-o.tensor.Shape[0]))
		}
	}
	return list, beyond == 0 || s.reaches(o.tensor, beyond)
}

// reaches ensures that a buffer is followed by the given number of readable elements.
func (s *scope) reaches(t *expr.Tensor, beyond int64) bool {
	b := s.in[t]
	if b == nil || b.Space != ir.Scratch {
		return false // not the kernel's memory
	}
	s.spare[t] = max(s.spare[t], beyond)
	return true
}

// begin allocates the sums and zeroes them.
func (s *scope) begin() ir.Block {
	out := ir.Block{&ir.Alloc{Buffer: s.layout.buffer}}
	for _, tile := range s.tiles {
		out = append(out, &ir.Alloc{Buffer: tile}, ir.Exec(x86.TileZero(tile.Tensor.DType), ir.All(tile)))
	}
	return out
}

// end stores the sums.
func (s *scope) end() (out ir.Block) {
	columns := s.layout.columnsOf(1)
	for k, tile := range s.tiles {
		row, column := k/len(columns), columns[k%len(columns)]
		index := s.layout.rowsOf(s.layout.steps)[row] + column
		to := ir.At(s.layout.buffer, expr.I(index))
		to.Stride = s.layout.rowElements()
		out = append(out, ir.Exec(x86.TileStore(tile.Tensor.DType), ir.All(tile), to))
	}
	return out
}

// readers rewrites statements that read the stored sums; ok is false if one writes to them, or reads whole rows.
func (s *scope) readers(b ir.Block) (done ir.Block, ok bool) {
	ok = true
	ir.Visit(b, func(st ir.Stmt) {
		if w := ir.Written(st); w != nil && w.Tensor == s.sums.Tensor {
			ok = false
		}
		if c, isCall := st.(*ir.Call); isCall && c.Reads(s.sums.Tensor) {
			ok = false // its rows would move apart
		}
	})
	done = ir.Rewrite(b, func(e expr.Expr) expr.Expr {
		return expr.RewriteLoads(e, s.sums.Tensor, func(l *expr.Load) expr.Expr {
			at, fits := s.layout.moved(l.Index[0])
			ok = ok && fits
			return s.layout.buffer.Tensor.At(at)
		})
	})
	return done, ok
}
