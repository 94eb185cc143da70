package codegen

import (
	"fmt"
	"slices"

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
		c, ok := st.(*ir.Call)
		for k := 0; ok && k < len(c.Args); k++ {
			a := c.Args[k]
			if a.Map == nil || mapAmong(maps, a) != nil {
				continue
			}
			at := slices.IndexFunc(globals, func(g global) bool { return g.Tensor == a.Tensor })
			maps = append(maps, tensorMap{a.Map, globals[at], fmt.Sprintf("m%d", len(maps))})
		}
	})
	return maps
}

// mapAmong returns the map of an operand, or nil if maps lacks it.
func mapAmong(maps []tensorMap, a ir.Arg) *tensorMap {
	for k, m := range maps {
		if m.of.Tensor == a.Tensor && m.PanelBytes == a.Map.PanelBytes && slices.Equal(m.Dims, a.Map.Dims) {
			return &maps[k]
		}
	}
	return nil
}
