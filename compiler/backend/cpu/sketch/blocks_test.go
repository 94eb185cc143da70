package sketch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// product returns a product of rows by 4096 columns with four-bit weights in blocks of the given size.
func product(t *testing.T, rows, depth, block int64) *expr.Workload {
	t.Helper()
	text := fmt.Sprintf("tilth-workload 1\ninput t0 f32[%[1]d,%[2]d]\nconstant t1 u8[%[3]d,4096]\nconstant t2 f32[%[4]d,4096]\n"+
		"sum t3 f32[%[1]d,4096] over %[2]d = (mul [t0 i0 r0] (mul (cast f32 (select (eq (floormod r0 2) 0) "+
		"(and [t1 (floordiv r0 2) i1] 15:u8) (shr [t1 (floordiv r0 2) i1] 4:u8))) [t2 (floordiv r0 %[5]d) i1]))\noutput t3\n",
		rows, depth, (depth+1)/2, (depth-1)/block+1, block)
	w, err := expr.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestBlockwiseDataNeedsWholeBlocks checks that data has eight bits if numerics and the machine allow it, and that the
// tile of any product is used otherwise.
func TestBlockwiseDataNeedsWholeBlocks(t *testing.T) {
	const avx512 = "x86-64-v4"
	for _, c := range []struct {
		name, target       string
		rows, depth, block int64
		numerics           schedule.Numerics
		want               string
	}{
		{"strict", avx512, 1, 4096, 32, schedule.Strict, "blockwise 1 0"},
		{"default", avx512, 128, 4096, 32, schedule.Default, "blockwise 1 0"},
		{"fast", avx512, 1, 4096, 32, schedule.Fast, "blockwise 1 1"},
		{"fast, many rows", avx512, 128, 4096, 128, schedule.Fast, "blockwise 1 1"},
		{"one block", avx512, 1, 4096, 4096, schedule.Fast, "blockwise 1 1"},
		{"a last block that is not whole", avx512, 1, 4080, 32, schedule.Fast, ""},
		{"blocks that are no words", avx512, 1, 4080, 12, schedule.Fast, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sketch.New(product(t, c.rows, c.depth, c.block).Merge(), sketch.Target(t, c.target), c.numerics)
			applied, err := s.Apply(s.Default())
			if err != nil {
				t.Fatal(err)
			}
			trace := string(applied.Trace())
			if has := strings.Contains(trace, "blockwise"); has != (c.want != "") || !strings.Contains(trace, c.want) {
				t.Errorf("want %q in the default schedule:\n%s", c.want, trace)
			}
			t.Log(s.Format(s.Default()))
		})
	}
}
