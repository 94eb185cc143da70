package schedule

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// blockProducts are products with weights in blocks of 16; CODE, ZERO and SCALE stand for what differs.
const blockProducts = `tilth-workload 1
input t0 f32[3,64]
constant t1 u8[64,20]
constant t2 f32[4,20]
sum t3 f32[3,20] over 64 = (mul [t0 i0 r0] (mul (sub (cast f32 CODE) ZERO) SCALE))
output t3
`

func TestBlockwiseIsForWeightsInBlocks(t *testing.T) {
	const code, zero, scale = "[t1 r0 i1]", "0x1p+07:f32", "[t2 (floordiv r0 16) i1]"
	for _, c := range []struct{ name, code, zero, scale, trace, want string }{
		{"floats", code, zero, scale, "blockwise 0 0", ""},
		{"integers", code, zero, scale, "blockwise 0 1", ""},
		{"no form", code, zero, scale, "blockwise 0 2", "blockwise: 2 is not a form"},
		{"no stage", code, zero, scale, "blockwise 1 0", "there is no stage 1"},
		{"scheduled", code, zero, scale, "unroll 0 0\nblockwise 0 0", "was already scheduled"},
		{"twice", code, zero, scale, "blockwise 0 0\nblockwise 0 0", "is not the product of data with codes"},
		{"packed", code, zero, scale, "pack 0 0 0 0 1 0 0\nblockwise 0 1", "already packed or transformed"},
		{"a scale of each row", code, zero, "[t2 i0 i1]", "blockwise 0 0", "has scales for each row"},
		{"a scale between blocks", code, zero, "[t2 (floordiv (add r0 1) 17) i1]", "blockwise 0 0", "belong to no block"},
		{"blocks that do not divide", code, zero, "[t2 (floordiv r0 24) i1]", "blockwise 0 0", "not whole blocks of 24"},
		{"blocks of two sizes", code, "[t2 (floordiv r0 32) i1]", scale, "blockwise 0 0", "has blocks of"},
		{"small blocks", code, "0x1p+00:f32", "[t2 (floordiv r0 2) i1]", "blockwise 0 1", "not a multiple of 4"},
		{"codes in another order", "[t1 (sub 63 r0) i1]", zero, scale, "blockwise 0 0", "does not multiply rows of data with columns of codes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := expr.Parse(strings.NewReplacer("CODE", c.code, "ZERO", c.zero, "SCALE", c.scale).Replace(blockProducts))
			if err != nil {
				t.Fatal(err)
			}
			s, err := Replay(w, []byte("tilth-trace 1\n"+c.trace+"\n"))
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "" && (s.Numerics() == Fast) != strings.HasSuffix(c.trace, "1"):
				t.Errorf("%s is %v", c.trace, s.Numerics())
			}
		})
	}
}
