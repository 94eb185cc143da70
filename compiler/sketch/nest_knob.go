package sketch

import "github.com/tilth-dev/tilth/compiler/searchspace"

// Knob returns an open parameter.
func Knob[P any](name string, field func(*P) *int64, values ...int64) searchspace.Parameter[P] {
	return searchspace.Parameter[P]{Knob: searchspace.Knob{Name: name, Values: values}, Field: field}
}

// Unrolling marks a knob as an unroll factor.
func Unrolling[P any](p searchspace.Parameter[P]) searchspace.Parameter[P] {
	p.Unrolls = true
	return p
}
