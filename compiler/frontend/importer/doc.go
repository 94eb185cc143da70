// Package importer reads the nodes of a model into a graph. It resolves names and shapes, inlines functions, folds
// what is constant, and has operators written as others where package table says so, for which it is the op.Builder.
// Begin to read at importer.go.
package importer
