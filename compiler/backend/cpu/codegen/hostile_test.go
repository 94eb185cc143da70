package codegen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// chain returns a workload of n stages that each load the previous one twice.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("tilth-workload 1\ninput t0 f32[64]\n")
	for k := range n {
		fmt.Fprintf(&b, "map t%d f32[64] = (add [t%d i0] [t%d (floormod (add i0 1) 64)])\n", k+1, k, k)
	}
	fmt.Fprintf(&b, "output t%d\n", n)
	return b.String()
}

// ladder returns a workload of n stages that each load the previous two.
func ladder(n int) string {
	var b strings.Builder
	b.WriteString("tilth-workload 1\ninput t0 f32[64]\nmap t1 f32[64] = (neg [t0 i0])\n")
	for k := 2; k <= n; k++ {
		fmt.Fprintf(&b, "map t%d f32[64] = (add [t%d i0] [t%d i0])\n", k, k-2, k-1)
	}
	fmt.Fprintf(&b, "output t%d\n", n)
	return b.String()
}

// trace returns a trace with the lines for k = 0, 1, ...
func trace(n int, lines func(k int) string) string {
	var b strings.Builder
	b.WriteString("tilth-trace 1\n")
	for k := range n {
		b.WriteString(lines(k) + "\n")
	}
	return b.String()
}

const vector = "tilth-workload 1\ninput t0 f32[%s]\nmap t1 f32[%s] = (neg [t0 i0])\noutput t1\n"

func vectorOf(extent string) string { return fmt.Sprintf(vector, extent, extent) }

// TestHostileSchedules checks that schedules that would never end, or panic, are refused.
func TestHostileSchedules(t *testing.T) {
	cases := map[string]struct{ workload, trace, want string }{
		"inlining that doubles a body each time": {
			chain(40), trace(39, func(k int) string { return fmt.Sprintf("inline %d", 38-k) }), "larger than 16384 nodes",
		},
		"inlining that doubles a body each time, from the front": {
			chain(40), trace(39, func(k int) string { return fmt.Sprintf("inline %d", k) }), "larger than 16384 nodes",
		},
		"splits fused again and again": {
			vectorOf("100"), trace(20, func(k int) string { return fmt.Sprintf("split 0 %d 7 0\nfuse 0 %d %d", 3*k, 3*k+1, 3*k+2) }), "too many iterators",
		},
		"a huge unroll":             {vectorOf("1000000000"), trace(1, func(int) string { return "unroll 0 0" }), "unrolling makes more than"},
		"a huge vectorised loop":    {vectorOf("1000000000"), trace(1, func(int) string { return "vectorize 0 0" }), "unrolling makes more than"},
		"more iterations than time": {vectorOf("2000000000000"), trace(0, nil), "iterations"},
		"a reduction of nearly 2^63 steps": {
			"tilth-workload 1\ninput t0 f32[2]\nsum t1 f32[2] over 9223372036854775807,9223372036854775807 = [t0 i0]\noutput t1\n", trace(0, nil), "iterations",
		},
		"many partial tiles, each doubling the code": {
			"tilth-workload 1\ninput t0 f32[9,9,9,9,9,9,9,9]\nmap t1 f32[9,9,9,9,9,9,9,9] = (neg [t0 i0 i1 i2 i3 i4 i5 i6 i7])\noutput t1\n",
			trace(16, func(k int) string { return fmt.Sprintf("split 0 %d %d 0", k, 4-k/8*2) }), "more than 16384 loops",
		},
		"a packed constant that overflows": {
			"tilth-workload 1\nconstant t0 f32[1,1,1]\nmap t1 f32[1,1,1] = [t0 i0 i1 i2]\noutput t1\n",
			"tilth-trace 1\npack 0 0 2147483647 0 0 2147483647 1 1 2147483647 0 1 2147483647 1 2 2147483647 0 2 2147483647 1\n", "more than 2147483648 elements",
		},
		"stages inside one another along a ladder": {
			ladder(60), trace(59, func(k int) string { return fmt.Sprintf("compute-at %d 59 0", 58-k) }), "steps to lower",
		},
		"deep arithmetic": {
			"tilth-workload 1\ninput t0 f32[64]\nmap t1 f32[64] = [t0 (floormod " + strings.Repeat("(add (floordiv ", 90) + "i0" + strings.Repeat(" 3) i0)", 90) + " 64)]\noutput t1\n",
			trace(0, nil), "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			err := compileText(t, c.workload, c.trace)
			if took := time.Since(begin); took > kerneltest.HostileLimit {
				t.Errorf("took %v", took)
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func compileText(t testing.TB, workload, trace string) error {
	w, err := expr.Parse(workload)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedule.Replay(w, []byte(trace))
	if err != nil {
		return err
	}
	_, err = Module(w, []backend.Kernel{{ID: "k", Schedule: s}}, modes[0].description(t))
	return err
}
