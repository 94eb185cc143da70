package op

import (
	"maps"
	"slices"
)

// defs has every operator by name.
var defs = index(
	convDefs, convTransposeDefs, poolDefs, matmulDefs, normDefs, reduceDefs, softmaxDefs,
	unaryDefs, binaryDefs, otherScalarDefs,
	reshapeDefs, moveDefs, sliceDefs, gatherDefs, knownDefs,
	argDefs, cumulativeDefs, einsumDefs, triluDefs, oneHotDefs, reverseDefs, resizeDefs, gatherNDDefs, scatterDefs, topKDefs,
	dataShapeDefs, signalWindowDefs,
	recurrentDefs, quantizeDefs, hardmaxDefs, lrnDefs, cacheDefs, attentionDefs,
)

var names = slices.Sorted(maps.Keys(defs))

func index(tables ...[]Def) map[string]*Def {
	m := map[string]*Def{}
	for _, table := range tables {
		for k := range table {
			m[table[k].Name] = &table[k]
		}
	}
	return m
}
