package sketch

import "github.com/tilth-dev/tilth/compiler/searchspace"

// Whole describes schedules that compute a workload in one nest, that of stage Out. The stages in Inline are
// inlined first, in order.
type Whole struct {
	Out    int
	Inline []int
	searchspace.Family
}
