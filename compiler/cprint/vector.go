package cprint

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// VectorName returns the C name of the vector type with that many lanes.
func VectorName(d array.DType, lanes int64) string { return fmt.Sprintf("%vx%d", d, lanes) }

// List formats numbers as a C list.
func List(numbers []int64) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}

// Indices returns the list of the n numbers from first on.
func Indices(first, n int64) string {
	list := make([]int64, n)
	for k := range list {
		list[k] = first + int64(k)
	}
	return List(list)
}
