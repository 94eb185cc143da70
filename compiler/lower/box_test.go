package lower_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestTMACopiesHaveTheLimitsOfTensorMaps: 256 elements along a dimension, and rows that can be swizzled, of a tensor
// that still lies in global memory when everything is decided.
func TestTMACopiesHaveTheLimitsOfTensorMaps(t *testing.T) {
	const (
		product = "input t0 f16[512,64]\ninput t1 f16[64,24]\nsum t2 f32[512,24] over 64 = (mul (cast f32 [t0 i0 r0]) (cast f32 [t1 r0 i1]))\noutput t2\n"
		copied  = "input t0 f16[64,64]\ninput t1 f16[64,24]\nmap t2 f16[64,64] = (add [t0 i0 i1] [t0 i0 i1])\n" +
			"sum t3 f32[64,24] over 64 = (mul (cast f32 [t2 i0 r0]) (cast f32 [t1 r0 i1]))\noutput t3\n"
		ahead = "scope 1 1\nswizzle 1\npipeline 1 3\nbulk 1\n"
	)
	for _, c := range []struct{ name, workload, trace, want string }{
		{"a box", product, "cache-read 0 0 0 1\nsplit 0 2 16 0\nsplit 0 0 64 0\nreorder 0 5 3 6 1 4\ncompute-at 1 0 3\n" + ahead, ""},
		{"a long box", product, "cache-read 0 0 0 1\nsplit 0 2 16 0\nreorder 0 3 0\ncompute-at 1 0 3\n" + ahead, "lower: stage 1 copies boxes that are 512 long, more than 256"},
		{"rows of 24 bytes", product, "cache-read 0 1 0 1\nsplit 0 2 16 0\nsplit 0 1 12 0\nreorder 0 0 5 3 6 4\ncompute-at 1 0 3\n" + ahead,
			"lower: stage 1 copies boxes to rows that cannot be swizzled"},
		{"a tensor that is inlined", copied, "cache-read 1 0 0 1\nsplit 1 2 16 0\ncompute-at 2 1 3\nscope 2 1\nswizzle 2\npipeline 2 3\nbulk 2\ninline 0\n",
			"lower: stage 2 is not a copy of all that it reads"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := expr.Parse("tilth-workload 1\n" + c.workload)
			if err != nil {
				t.Fatal(err)
			}
			s, err := schedule.Replay(w, []byte("tilth-trace 1\n"+c.trace))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = lower.Schedule(s); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
