package sketch

import "github.com/tilth-dev/tilth/compiler/space"

// Knob returns an open parameter.
func Knob[P any](name string, field func(*P) *int64, values ...int64) space.Parameter[P] {
	return space.Parameter[P]{Knob: space.Knob{Name: name, Values: values}, Field: field}
}

// Unrolling marks a knob as an unroll factor.
func Unrolling[P any](p space.Parameter[P]) space.Parameter[P] {
	p.Unrolls = true
	return p
}
