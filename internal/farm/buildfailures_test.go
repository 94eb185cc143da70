package farm

import (
	"strings"
	"testing"
)

func TestBuildsThatAllFailAlikeAreGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		builds []string
		ends   bool
	}{
		"alike but for their numbers": {[]string{"/tmp/b1/unit.c: no", "/tmp/b22/unit.c: no", "/tmp/b333/unit.c: no"}, true},
		"more of them":                {[]string{"no", "no", "no", "no", "no", "no"}, true},
		"too few":                     {[]string{"no", "no"}, false},
		"of several kinds":            {[]string{"no", "no disk", "no", "no disk"}, false},
		"one succeeds":                {[]string{"no", "", "no", "no", "no"}, false},
	} {
		var said []error
		h := &buildFailureGuard{end: func(err error) { said = append(said, err) }}
		for _, b := range c.builds {
			h.built(b)
		}
		if ends := len(said) == 1 && strings.Contains(said[0].Error(), "builds nothing: the first 3 builds fail alike: "); ends != c.ends || len(said) > 1 {
			t.Errorf("%s: %v", name, said)
		}
	}
}
