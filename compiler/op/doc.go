// Package op defines the operators: for each, its shape rule and its tensor expressions. Operators are written
// once, on ONNX's axes; a Layout describes where an operand's elements lie in memory, so no operator has a variant
// per layout. Traits describe an operator to passes. To add an operator, add a Def to a family.
package op
