// Package graph represents models as operators applied to typed values, with a text form and a verifier. Later stages
// record their decisions in it: the memory places of values, and the kernel of each node. It depends on operators
// (package op), but not on files or devices. Start with Graph.
package graph
