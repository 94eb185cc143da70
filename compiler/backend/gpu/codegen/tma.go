package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// tensorMap is a kernel parameter for TMA copies of boxes of a buffer in global memory.
type tensorMap struct {
	*ir.TensorMap
	of   global
	name string
}

// mapsOf returns the tensor maps of a launch in order of use, one for all copies of equal boxes of a buffer.
func mapsOf(n *ir.For, globals []global) (maps []tensorMap) {
	ir.Visit(n.Body, func(st ir.Stmt) {
		c, ok := st.(*ir.TMACopy)
		if !ok || mapAmong(maps, c) != nil {
			return
		}
		at := slices.IndexFunc(globals, func(g global) bool { return g.Tensor == c.From })
		maps = append(maps, tensorMap{c.Map, globals[at], fmt.Sprintf("m%d", len(maps))})
	})
	return maps
}

// mapAmong returns the map for a copy's boxes, or nil if maps lacks it.
func mapAmong(maps []tensorMap, c *ir.TMACopy) *tensorMap {
	for k, m := range maps {
		if m.of.Tensor == c.From && m.PanelBytes == c.Map.PanelBytes && slices.Equal(m.Dims, c.Map.Dims) {
			return &maps[k]
		}
	}
	return nil
}

func (p *printer) tmaCopy(n *ir.TMACopy) {
	at := make([]string, len(n.At))
	for k, x := range n.At {
		at[k] = p.index(x)
	}
	p.line("COPY_TENSOR_%dD(%s, %s, %s, %s, %s, %s);", len(at), p.buffers[n.To.Tensor], p.index(n.Index), mapAmong(p.maps, n).name,
		strings.Join(at, ", "), p.buffers[n.Mbarriers], p.index(n.Mbarrier))
}

// mbarrier prints the operations on mbarriers.
func (p *printer) mbarrier(st ir.Stmt) {
	each := func(t *expr.Tensor, words string) {
		for k := range t.Shape[0] {
			p.line(words, p.buffers[t], k)
		}
	}
	switch n := st.(type) {
	case *ir.MbarrierInit:
		each(n.Mbarriers.Tensor, "MBARRIER_INIT(%s, %d, 1);")
	case *ir.MbarrierInvalidate:
		each(n.Mbarriers.Tensor, "MBARRIER_INVALIDATE(%s, %d);")
	case *ir.MbarrierExpect:
		p.line("MBARRIER_EXPECT(%s, %s, %d);", p.buffers[n.Mbarriers], p.index(n.Mbarrier), n.Bytes)
	case *ir.MbarrierWait:
		p.line("MBARRIER_WAIT(%s, %s, %s);", p.buffers[n.Mbarriers], p.index(n.Mbarrier), p.index(n.Parity))
	}
}
