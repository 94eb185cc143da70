// Package op holds the operators: for each, how the shape of its result follows from its operands, and its tensor
// expressions. Operators are written once, on the axes that ONNX gives them; where values lie in memory is a Layout of
// each operand, so that none has a variant per layout. Adding an operator is adding a Def to one of the tables.
package op
