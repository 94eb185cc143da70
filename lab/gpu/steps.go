package gpu

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
)

// step is a part of the run.
type step struct {
	name string
	// takes is the assumed duration before the first run.
	takes time.Duration
	run   func(ctx context.Context, b *suite, r *result) error
}

// steps returns all steps in order: prerequisites, a few of each kind, and then those most informative about
// the limits per time.
func steps() []step {
	bf16, tf32, fp32 := large(4096)[0], large(4096)[1], large(4096)[2]
	return slices.Concat(
		[]step{{machineStep, 30 * time.Second, machine}, {sandboxStep, 30 * time.Second, probeSandbox}, caseStep(0, "default")},
		stepsOf(bf16, skinny(1, 4096, 14336)), stepsOf(models("fast", 1)...)[:2],
		[]step{pointStep(1, "fast"), {"memory checker", time.Minute, memoryChecker}, {libraryStep, 2 * time.Minute, library}},
		stepsOf(tf32, fp32, skinny(8, 4096, 14336), skinny(16, 4096, 14336)), stepsOf(models("fast", 1)...)[2:],
		stepsOf(models("fast", 32)...), []step{caseStep(0, "fast"), pointStep(2, "default")},
		stepsOf(large(8192)...), stepsOf(models("default", 1)...),
		stepsOf(skinny(1, 14336, 4096), skinny(8, 14336, 4096), skinny(16, 14336, 4096)),
		stepsOf(models("default", 32)...),
		[]step{pointStep(3, "fast"), pointStep(4, "strict"), caseStep(1, "default"), caseStep(2, "default"), caseStep(3, "default"), caseStep(4, "default")},
		stepsOf(compensated(4096), compensated(8192)),
	)
}

// work is what a step tunes and compares.
type work interface {
	step() string
	takes() time.Duration
	compare(ctx context.Context, b *suite, r *result) error
}

// stepsOf returns a step for each work.
func stepsOf[W work](list ...W) []step {
	var made []step
	for _, w := range list {
		made = append(made, step{w.step(), w.takes(), w.compare})
	}
	return made
}

func caseStep(part int, numerics string) step {
	return step{caseName(part, numerics), 60 * time.Second, func(ctx context.Context, b *suite, r *result) error { return b.cases(ctx, part, numerics, r) }}
}

func pointStep(part int, numerics string) step {
	return step{fmt.Sprintf("points %d %s", part, numerics), pointTime + 15*time.Second, func(ctx context.Context, b *suite, r *result) error {
		return b.points(ctx, part, numerics, r)
	}}
}

func caseName(part int, numerics string) string {
	return fmt.Sprintf("cases %d of %d %s", part+1, caseParts, numerics)
}

// large returns the square products to compare with cuBLAS: in bfloat16, and in float32 with and without rounding to
// TF32.
func large(size int64) []product {
	return []product{
		{size, size, size, array.BFloat16, "strict"}, {size, size, size, array.Float32, "fast"}, {size, size, size, array.Float32, "strict"},
	}
}

// compensated returns the float32 product in error-compensated TF32.
func compensated(size int64) product { return product{size, size, size, array.Float32, "default"} }

// skinny returns a bfloat16 product with few rows.
func skinny(m, k, n int64) product { return product{m, k, n, array.BFloat16, "strict"} }

// products returns all products to compare.
func products() []product {
	list := slices.Concat(large(4096), large(8192), []product{compensated(4096), compensated(8192)})
	for _, m := range []int64{1, 8, 16} {
		list = append(list, skinny(m, 4096, 14336), skinny(m, 14336, 4096))
	}
	return list
}
