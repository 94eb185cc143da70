// Package table is the one list of all operators, each of which has tensor expressions (package op) or is written as
// others (package expand); a few have expressions, and a form that some nodes are written in. To add an operator, add
// its Def to a family in one of the two. Who applies an operator finds it here.
package table
