package op

import (
	"slices"
)

// Operators lists the operators that are always expanded into others when a model is read: recurrent layers and
// control flow, which are unrolled; sequences and optionals, which are resolved; and compositions of simpler
// operators, such as losses and quantised products. Expansions add nodes through Builder.
var Operators = slices.Concat(
	expandRecurrentDefs, expandQuantizeDefs, integerDefs, controlDefs, sequenceDefs, lossDefs, expandNormDefs, expandAttentionDefs, trainingDefs, expandSuppressionDefs, runtimeDefs,
	runtimeQuantisedDefs,
)

// Form is an alternative expansion for some nodes of an operator that has tensor expressions.
type Form struct {
	// Name is the operator's name.
	Name string
	// Applies reports whether the form applies to a node.
	Applies func(n *Node, in []*Item) bool
	Expand  Expansion
}

// Forms has at most one form per operator.
var Forms = slices.Concat([]Form{batchNormForm, uniqueForm}, quantisedProducts, quantisedMoves, selections)
