package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// TensorAlgorithm is a format for factors of a type, and its name.
type TensorAlgorithm struct {
	By     searchspace.Algorithm
	Format schedule.Format
}

// TensorAlgorithms returns the formats of warp instructions that numerics allow, for sums of a type and factors of
// type d.
func TensorAlgorithms(sum, d array.DType, numerics schedule.Numerics) (list []TensorAlgorithm) {
	for _, x := range algorithms {
		level := x.level
		if x.format.Holds(d) {
			level = schedule.Strict
		}
		if x.format <= schedule.I8 && !halved(x.format, d) && sum == x.format.Sum() && x.format.Takes(d) && level <= numerics {
			list = append(list, TensorAlgorithm{x.by, x.format})
		}
	}
	return list
}

// halved reports whether a format takes half as many terms of a type at a time as another does.
func halved(f schedule.Format, d array.DType) bool { return f == schedule.TF32 && f.Holds(d) }
