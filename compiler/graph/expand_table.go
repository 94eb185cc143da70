package graph

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/op"
)

// expanderTable has the operators that are written as others, by name.
func expanderTable() map[string]expander {
	table := map[string]expander{}
	for _, family := range []map[string]expander{
		recurrentExpanders(), quantizeExpanders(), integerExpanders(), controlExpanders(), sequenceExpanders(),
		lossExpanders(), normExpanders(), randomExpanders(), attentionExpanders(),
	} {
		maps.Copy(table, family)
	}
	return table
}

// Supported lists the names of the operators that models may use, in alphabetical order.
func Supported() []string {
	names := append(op.Supported(), slices.Collect(maps.Keys(expanderTable()))...)
	slices.Sort(names)
	return slices.Compact(names)
}
