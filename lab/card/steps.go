package card

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
		productSteps(bf16, skinny(1, 4096, 14336)), modelSteps("fast", 1)[:2],
		[]step{pointStep(1, "fast"), {"memory checker", time.Minute, memoryChecker}, {libraryStep, 2 * time.Minute, library}},
		productSteps(tf32, fp32, skinny(8, 4096, 14336), skinny(16, 4096, 14336)), modelSteps("fast", 1)[2:],
		modelSteps("fast", 32), []step{caseStep(0, "fast"), pointStep(2, "default")},
		productSteps(large(8192)...), modelSteps("default", 1),
		productSteps(skinny(1, 14336, 4096), skinny(8, 14336, 4096), skinny(16, 14336, 4096)),
		modelSteps("default", 32),
		[]step{pointStep(3, "fast"), pointStep(4, "strict"), caseStep(1, "default"), caseStep(2, "default"), caseStep(3, "default"), caseStep(4, "default")},
		productSteps(compensated(4096), compensated(8192)),
	)
}

func productSteps(list ...product) []step {
	var made []step
	for _, p := range list {
		made = append(made, step{p.step(), p.takes(), func(ctx context.Context, b *suite, r *result) error { return b.product(ctx, p, r) }})
	}
	return made
}

func modelSteps(numerics string, batch int64) []step {
	var made []step
	for _, m := range models(numerics, batch) {
		made = append(made, step{m.step(), m.takes(), func(ctx context.Context, b *suite, r *result) error { return b.model(ctx, m, r) }})
	}
	return made
}

func caseStep(part int, numerics string) step {
	return step{caseName(part, numerics), 60 * time.Second, func(ctx context.Context, b *suite, r *result) error { return b.cases(ctx, part, numerics, r) }}
}

func pointStep(part int, numerics string) step {
	return step{pointName(part, numerics), pointTime + 15*time.Second, func(ctx context.Context, b *suite, r *result) error {
		return b.points(ctx, part, numerics, r)
	}}
}

func caseName(part int, numerics string) string {
	return fmt.Sprintf("cases %d of %d %s", part+1, caseParts, numerics)
}

func pointName(part int, numerics string) string { return fmt.Sprintf("points %d %s", part, numerics) }

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
