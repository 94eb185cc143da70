package expand

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/op"
)

// Operators are those that are always written as others.
var Operators = slices.Concat(
	recurrentDefs, quantizeDefs, integerDefs, controlDefs, sequenceDefs, lossDefs, normDefs, attentionDefs, trainingDefs, suppressionDefs, runtimeDefs,
	runtimeQuantisedDefs,
)

// Form is another way to write some nodes of an operator that has tensor expressions.
type Form struct {
	// Name is the operator's.
	Name string
	// Applies reports whether a node is written in this form.
	Applies func(n *op.Node, in []*op.Item) bool
	Expand  op.Expansion
}

// Forms has at most one for each operator.
var Forms = slices.Concat([]Form{batchNormForm, uniqueForm}, quantisedProducts, quantisedMoves, selections)
