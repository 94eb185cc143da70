package builder

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// printedSizes returns printed kernels of several sizes, each with that many unrolled additions.
func printedSizes(t testing.TB) []printed {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	x := expr.NewInput("x", array.Float32, 256)
	w, err := expr.NewWorkload([]*expr.Tensor{expr.Compute("y", x.Shape, func(i []expr.Expr) expr.Expr { return expr.AddE(x.At(i...), x.At(i...)) })})
	if err != nil {
		t.Fatal(err)
	}
	by, err := registry.Of(machine)
	if err != nil {
		t.Fatal(err)
	}
	var list []printed
	for k, unrolled := range []int64{1, 4, 16, 64} {
		s := schedule.New(w)
		_, inner, err := s.Split(0, 0, unrolled, schedule.Peel)
		if err == nil {
			err = s.Unroll(0, inner)
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := by.Print(fmt.Sprintf("k%d", k), backend.Kernel{ID: schedule.Digest(s.Trace()), Schedule: s}, machine)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, printed{index: k, id: fmt.Sprint(k), Printed: p})
	}
	return list
}

// TestPartsOfABatchAreOfEqualSize also checks that parts keep the order and are complete. Sizes may differ by one
// candidate.
func TestPartsOfABatchAreOfEqualSize(t *testing.T) {
	kinds := printedSizes(t)
	size := func(list []printed) (bytes int) {
		for _, p := range list {
			bytes += p.Size()
		}
		return bytes
	}
	rapid.Check(t, func(t *rapid.T) {
		var list []printed
		largest := 0
		for k, kind := range rapid.SliceOfN(rapid.IntRange(0, len(kinds)-1), 0, 20).Draw(t, "kinds") {
			p := kinds[kind]
			p.index = k
			list, largest = append(list, p), max(largest, p.Size())
		}
		n := rapid.IntRange(1, 5).Draw(t, "n")
		parts := split(list, n)
		if len(parts) != min(n, len(list)) {
			t.Fatalf("%d parts of %d candidates, want %d", len(parts), len(list), min(n, len(list)))
		}
		next := 0
		for _, part := range parts {
			if len(part) == 0 {
				t.Fatal("an empty part")
			}
			if len(list) > 4*n && size(part) > size(list)/n+2*largest {
				t.Errorf("a part has %d bytes of %d in %d parts, and the largest candidate %d", size(part), size(list), n, largest)
			}
			for _, p := range part {
				if p.index != next {
					t.Fatalf("candidate %d stands where %d belongs", p.index, next)
				}
				next++
			}
		}
		if next != len(list) {
			t.Errorf("%d of %d candidates are in a part", next, len(list))
		}
	})
}
