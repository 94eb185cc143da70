package schedule

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// TestTMACopyRefusals: swizzled, ahead, without loops of its own, of a whole tensor in global memory whose rows are
// whole, element by element.
func TestTMACopyRefusals(t *testing.T) {
	const matrices = "input t0 f16[64,64]\ninput t1 f16[64,24]\nsum t2 f32[64,24] over 64 = (mul (cast f32 [t0 i0 r0]) (cast f32 [t1 r0 i1]))\noutput t2\n"
	const ahead = "cache-read 0 0 0 1\nsplit 0 2 16 0\ncompute-at 1 0 3\nscope 1 1\nswizzle 1\npipeline 1 3\n"
	for _, c := range []struct{ name, workload, trace, want string }{
		{"a box", matrices, ahead + "bulk 1\n", ""},
		{"twice", matrices, ahead + "bulk 1\nbulk 1\n", "bulk: stage 1 is already copied as boxes"},
		{"a loop behind it", matrices, ahead + "bulk 1\nsplit 1 0 8 0\n", "split: stage 1 is copied as boxes, and has no loops"},
		{"loops", matrices, ahead + "split 1 0 8 0\nbulk 1\n", "bulk: stage 1 has loops of its own"},
		{"no stage", matrices, "bulk 9\n", "bulk: there is no stage 9"},
		{"not ahead", matrices, strings.Replace(ahead, "pipeline 1 3\n", "", 1) + "bulk 1\n", "bulk: stage 1 is not fetched ahead, or not swizzled"},
		{"not swizzled", matrices, strings.Replace(ahead, "swizzle 1\n", "", 1) + "bulk 1\n", "bulk: stage 1 is not fetched ahead, or not swizzled"},
		{"lines in the place of terms", matrices, strings.Replace(ahead, "0 0 0 1", "0 0 1 0", 1) + "bulk 1\n", "bulk: stage 1 has no rows of t0"},
		{"rows that are not whole", strings.ReplaceAll(strings.ReplaceAll(matrices, "over 64", "over 60"), "[64,64]", "[64,60]"), ahead + "bulk 1\n",
			"bulk: stage 1 reads t0, whose rows of 120 bytes are not multiples of 16"},
		{"a part of another tensor", strings.Replace(matrices, "f16[64,64]", "f16[64,64]@[128,1]", 1), ahead + "bulk 1\n",
			"bulk: stage 1 reads t0, a part of another tensor, which may begin anywhere"},
		{"one element", "input t0 f16[]\ninput t1 f16[64,24]\nmap t2 f16[64,64] = [t0]\n" +
			"sum t3 f32[64,24] over 64 = (mul (cast f32 [t2 i0 r0]) (cast f32 [t1 r0 i1]))\noutput t3\n",
			"split 1 2 16 0\ncompute-at 0 1 3\nscope 0 1\nswizzle 0\npipeline 0 3\nbulk 0\n", "bulk: stage 0 has no rows of t0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := expr.Parse("tilth-workload 1\n" + c.workload)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Replay(w, []byte("tilth-trace 1\n"+c.trace))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if err == nil && string(s.Trace()) != "tilth-trace 1\n"+c.trace {
				t.Errorf("it is\n%s", s.Trace())
			}
		})
	}
}
