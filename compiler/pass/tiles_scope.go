package pass

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// scope is where the sums of a buffer are computed and used.
type scope struct {
	*tilesPlacer
	in   ir.Allocated
	sums *ir.Buffer
	// spare is what tiles of the scope read behind the ends of buffers, in elements.
	spare map[*expr.Tensor]int64
	// of is what all products have in common, layout where their sums are stored.
	of     *tilesProduct
	layout *layout
	// tiles are those of sums, row of tiles by row.
	tiles []*ir.Buffer
}

// products replaces the loops on matrices of a block; ok is false where one cannot be, or where there is more.
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

// tilesProduct is the instructions of a loop on matrices.
func (s *scope) product(n *ir.For) (ir.Block, bool) {
	p, ok := tilesMatch(n, s.sums)
	if !ok || !s.has(p.a.load.DType()) {
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

// multiply loads the operands and adds their products. One of them is loaded whole, and the other tile by tile, into
// those that are left.
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
		l.Tile.Index = len(s.tiles) + k
		out = append(out, &ir.Alloc{Buffer: l.Tile}, l)
	}
	for j, l := range turns {
		l.Tile.Index = len(s.tiles) + len(whole) + j%free
		out = append(out, &ir.Alloc{Buffer: l.Tile}, l)
		for i, other := range whole {
			if swapped {
				out = append(out, &ir.TileProduct{Format: p.format, Sum: sum(j, i), A: l.Tile, B: other.Tile})
			} else {
				out = append(out, &ir.TileProduct{Format: p.format, Sum: sum(i, j), A: other.Tile, B: l.Tile})
			}
		}
	}
	return out, true
}

// loads fill tiles with an operand, from so many elements behind its first one on. They read so many beyond the last
// one that sums have products of; ok is false where these might be no memory of the kernel.
func (s *scope) loads(o tilesOperand, name string, offsets []int64, beyond int64) (list []*ir.TileLoad, ok bool) {
	for k, offset := range offsets {
		first := o.first.Plus(expr.Linear{Const: offset}, 1)
		tile := ir.NewTile(0, fmt.Sprintf("%s%d", name, k), o.load.DType())
		list = append(list, &ir.TileLoad{Tile: tile, From: o.load.Tensor, Index: first.Expr(), RowElements: o.rowElements})
		if _, highest, known := first.Bounds(); known && k == len(offsets)-1 {
			end := highest + (schedule.TileRows-1)*o.rowElements + schedule.TileRowBytes/o.load.DType().Bytes()
			beyond = min(beyond, max(0, end-o.load.Tensor.Shape[0]))
		}
	}
	return list, beyond == 0 || s.reaches(o.load.Tensor, beyond)
}

// reaches makes sure that there is room for so many elements behind those of a buffer.
func (s *scope) reaches(t *expr.Tensor, beyond int64) bool {
	b := s.in[t]
	if b == nil || b.Space != ir.Scratch {
		return false // memory of someone else
	}
	s.spare[t] = max(s.spare[t], beyond)
	return true
}

// begin allocates the sums and makes them zero.
func (s *scope) begin() ir.Block {
	out := ir.Block{&ir.Alloc{Buffer: s.layout.buffer}}
	for _, tile := range s.tiles {
		out = append(out, &ir.Alloc{Buffer: tile}, &ir.TileZero{Tile: tile})
	}
	return out
}

// end stores the sums.
func (s *scope) end() (out ir.Block) {
	columns := s.layout.columnsOf(1)
	for k, tile := range s.tiles {
		row, column := k/len(columns), columns[k%len(columns)]
		index := s.layout.rowsOf(s.layout.steps)[row] + column
		out = append(out, &ir.TileStore{Tile: tile, To: s.layout.buffer, Index: expr.I(index), RowElements: s.layout.rowElements()})
	}
	return out
}

// readers are statements that read the sums where they are stored; ok is false where one writes to them.
func (s *scope) readers(b ir.Block) (done ir.Block, ok bool) {
	ok = true
	ir.Visit(b, func(st ir.Stmt) {
		if w := ir.Written(st); w != nil && w.Tensor == s.sums.Tensor {
			ok = false
		}
	})
	done = ir.Rewrite(b, func(e expr.Expr) expr.Expr {
		return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
			l, isLoad := x.(*expr.Load)
			if !isLoad || l.Tensor != s.sums.Tensor {
				return x
			}
			at, fits := s.layout.moved(l.Index[0])
			ok = ok && fits
			return s.layout.buffer.Tensor.At(at)
		})
	})
	return done, ok
}
