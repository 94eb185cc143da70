package schedule

import (
	"strings"
	"testing"
)

func TestFetchingAhead(t *testing.T) {
	cases := map[string]struct{ trace, want string }{
		"sums of a constant":  {"strassen 0 8 1\nfetch 3 512", ""},
		"a constant":          {"pack 0 0 0 0 1 0 0\nprefetch 0 1024", ""},
		"no such stage":       {"fetch 9 512", "there is no stage 9"},
		"an output":           {"fetch 1 512", "stage 1 is an output"},
		"twice":               {"fetch 0 512\nfetch 0 512", "stage 0 is already fetched"},
		"no distance":         {"fetch 0 0", "is not between 1 and"},
		"a huge distance":     {"fetch 0 65537", "is not between 1 and"},
		"an unpacked one":     {"prefetch 0 512", "constant 0 is not packed"},
		"a constant twice":    {"pack 0 0 0 0 1 0 0\nprefetch 0 512\nprefetch 0 512", "already prefetched"},
		"a constant too far":  {"pack 0 0 0 0 1 0 0\nprefetch 0 65537", "is not between 1 and"},
		"a number is missing": {"fetch 0", "fetch does not take 1 numbers"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			text := traceHeader + "\n" + c.trace + "\n"
			s, err := Replay(parseWorkload(t, productText), []byte(text))
			switch {
			case c.want == "" && (err != nil || string(s.Trace()) != text):
				t.Errorf("got %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
