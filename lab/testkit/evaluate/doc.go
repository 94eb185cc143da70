// Package evaluate runs programs in Go, by the semantics of their workloads and without schedules. It is slow, and is
// the reference for compiled packages.
package evaluate
