// Package expand has the operators that are written as others when a model is read: recurrent layers and control flow,
// which are unrolled; sequences and optionals, which are followed; and what is a few simpler operators in a row, such
// as losses and quantised products. It knows package op, and adds nodes through op.Builder. To add one, add a def to a
// family; begin to read at expansion.go, and at loss.go for an example.
package expand
