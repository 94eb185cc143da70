// Package graph has models as operators applied to typed values: the graph, its text for people, and a verifier. What
// later stages decide stands in it: where values lie in memory, and which kernel computes a node. It knows operators
// (package op), and nothing of files or devices. Begin to read at graph.go.
package graph
