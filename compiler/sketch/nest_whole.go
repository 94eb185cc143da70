package sketch

import "github.com/tilth-dev/tilth/compiler/space"

// Whole is the schedules of a workload by one nest, that of stage Out, in which all others are computed. The stages of
// Inline disappear into those that read them; they are inlined first, in order.
type Whole struct {
	Out    int
	Inline []int
	space.Family
}
