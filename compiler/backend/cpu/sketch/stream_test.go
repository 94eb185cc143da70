package sketch

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestResultsBeyondTheCachesAreStreamed covers results that a reader would not find in the last-level cache, and no
// others.
func TestResultsBeyondTheCachesAreStreamed(t *testing.T) {
	machine := *Target(t, "x86-64-v3")
	machine.CPU.L3Bytes = 32 << 20
	const relu = "tilth-workload 1\ninput t0 f32[N]\nmap t1 f32[N] = (max [t0 i0] 0x0p+00:f32)\noutput t1\n"
	const product = "tilth-workload 1\ninput t0 f32[N,64]\nconstant t1 f32[64,64]\nsum t2 f32[N,64] over 64 = (mul [t0 i0 r0] [t1 r0 i1])\noutput t2\n"
	const pooling = "tilth-workload 1\ninput t0 f32[N,3,64]\nmax t1 f32[N,64] over 3 = [t0 i0 r0 i1]\noutput t1\n"
	cases := map[string]struct {
		text, size    string
		offered, used bool
	}{
		"a small map":                {relu, "100000", false, false},
		"a map half the cache":       {relu, "4000000", true, false},
		"a large map":                {relu, "16000000", true, true},
		"a small product":            {product, "1000", false, false},
		"a large product":            {product, "200000", true, true},
		"a map that loads by itself": {pooling, "200000", false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, err := expr.Parse(strings.ReplaceAll(c.text, "N", c.size))
			if err != nil {
				t.Fatal(err)
			}
			s := New(w, &machine, schedule.Strict)
			p := s.Default()
			text := s.Format(p)
			if strings.Contains(text, "stream=") != c.offered || strings.Contains(text, "stream=1") != c.used {
				t.Errorf("the default is %s", text)
			}
			applied, err := s.Apply(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(applied.Trace()), "stream "); got != c.used {
				t.Errorf("streams %v with %s", got, text)
			}
		})
	}
}
