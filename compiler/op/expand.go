// Expand has the operators that are written as others when a model is read: recurrent layers and control flow,
// which are unrolled; sequences and optionals, which are followed; and what is a few simpler operators in a row, such
// as losses and quantised products. It knows package op, and adds nodes through op.Builder. To add one, add a def to a
// family; begin to read at expansion.go, and at loss.go for an example.

package op

import (
	"slices"
)

// Operators are those that are always written as others.
var Operators = slices.Concat(
	expandRecurrentDefs, expandQuantizeDefs, integerDefs, controlDefs, sequenceDefs, lossDefs, expandNormDefs, expandAttentionDefs, trainingDefs, expandSuppressionDefs, runtimeDefs,
	runtimeQuantisedDefs,
)

// Form is another way to write some nodes of an operator that has tensor expressions.
type Form struct {
	// Name is the operator's.
	Name string
	// Applies reports whether a node is written in this form.
	Applies func(n *Node, in []*Item) bool
	Expand  Expansion
}

// Forms has at most one for each operator.
var Forms = slices.Concat([]Form{batchNormForm, uniqueForm}, quantisedProducts, quantisedMoves, selections)
