package schedule

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// TestSwizzleIsForOperandsInSharedMemory, once, without gaps.
func TestSwizzleIsForOperandsInSharedMemory(t *testing.T) {
	const begin = "tilth-trace 1\ncache-read 0 0 0 1\ncompute-at 1 0 2\n"
	w, err := expr.Parse("tilth-workload 1\ninput t0 f32[12,6]\ninput t1 f32[6,16]\nsum t2 f32[12,16] over 6 = (mul [t0 i0 r0] [t1 r0 i1])\noutput t2\n")
	if err != nil {
		t.Fatal(err)
	}
	for trace, want := range map[string]string{
		"scope 1 1\nswizzle 1\n":            "",
		"swizzle 1\n":                       "swizzle: stage 1 is not in shared memory",
		"scope 1 1\nswizzle 1\nswizzle 1\n": "swizzle: stage 1 is already swizzled",
		"scope 1 1\nskew 1 4\nswizzle 1\n":  "swizzle: stage 1 has gaps after its rows",
		"scope 1 1\nswizzle 1\nskew 1 4\n":  "skew: stage 1 is swizzled",
		"swizzle 7\n":                       "swizzle: there is no stage 7",
		"tensorize 0 2 12\n":                "tensorize: 12 is not a format",
		"tensorize 0 2 6\n":                 "for which warpgroup bf16 is not the format",
	} {
		s, err := Replay(w, []byte(begin+trace))
		switch {
		case want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", trace, err, want)
		case err == nil && string(s.Trace()) != begin+trace:
			t.Errorf("%q is %q when it is printed", begin+trace, s.Trace())
		}
	}
}
