package tuner

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// never returns kernels for the test's product without any legal choice, including their defaults.
func never(t *testing.T, n int) (kernels []*userkernel.Kernel) {
	t.Helper()
	values := "0"
	for v := 1; v < 64; v++ {
		values += fmt.Sprintf(",%d", v)
	}
	for i := range n {
		k, err := userkernel.Parse(fmt.Appendf(nil, `{"name":"never-%d","arch":"x86-64","numerics":"strict","workloads":[{"text":[`+
			`"tilth-workload 1","input t0 f32[$M,$K]","constant t1 f32[$K,$N]",`+
			`"sum t2 f32[$M,$N] over $K = (mul [t0 i0 r0] [t1 r0 i1])","output t2"]}],"knobs":[`+
			`{"name":"A","values":[%[2]s]},{"name":"B","values":[%[2]s]},{"name":"C","values":[%[2]s]}],`+
			`"legal":"1 == 0","default":{"A":0,"B":0,"C":0},"source":"x"}`, i, values))
		if err != nil {
			t.Fatal(err)
		}
		kernels = append(kernels, k)
	}
	return kernels
}

func productSpace(t *testing.T) *searchspace.Space {
	t.Helper()
	on, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	return spaceOf(t, kerneltest.Product(t, 16, 32, 64), on, schedule.Default)
}

// TestJobLooksForLegalChoicesWithinABudget checks the number of evaluations for unsatisfiable conditions. Apart from
// each kernel's default, it is independent of the numbers of kernels and tasks.
func TestJobLooksForLegalChoicesWithinABudget(t *testing.T) {
	const kernels, tasks = 16, 20
	a, err := NewKernelAdder(never(t, kernels), schedule.Default)
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	a.legal = func(f *userkernel.Fit, values []int64, threads int) error {
		looks++
		return f.Legal(values, threads)
	}
	s := productSpace(t)
	for range tasks {
		larger, err := a.Add(t.Context(), s)
		if err != nil || larger.Owns() > 0 {
			t.Fatalf("%d kernels, %v", larger.Owns(), err)
		}
	}
	if want := maxLooks + kernels*tasks; looks != want {
		t.Errorf("%d choices were looked at, not %d", looks, want)
	}
}

func TestLookingEndsWithItsContext(t *testing.T) {
	a, err := NewKernelAdder(never(t, 2), schedule.Default)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	a.legal = func(f *userkernel.Fit, values []int64, threads int) error {
		if looks++; looks == 10 {
			cancel()
		}
		return f.Legal(values, threads)
	}
	if _, err := a.Add(ctx, productSpace(t)); !errors.Is(err, context.Canceled) || looks != 10 {
		t.Errorf("%d choices were looked at: %v", looks, err)
	}
}
