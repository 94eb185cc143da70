// Package importer reads the nodes of a model into a graph. It resolves names and shapes, inlines functions, folds
// constants, and expands the operators that the operator table defines by others, acting as their op.Builder. Start
// with Build.
package importer
