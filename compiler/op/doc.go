// Package op holds the operators: for each, its shape rule and its tensor expressions. Operators are written once, on
// ONNX's axes; a Layout says where an operand's elements lie in memory, so no operator has a variant per layout.
// Traits tell passes what they need to know of an operator. To add one, add a Def to a family.
package op
