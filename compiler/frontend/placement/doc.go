// Package placement decides where values lie: the order of their axes in memory, and which of them are views or parts
// of others, so that moving elements costs no pass over memory. It works on graphs before they are cut into kernels,
// and tells later stages the place of a value. Begin to read at passes.go, and at place.go for what a place is.
package placement
