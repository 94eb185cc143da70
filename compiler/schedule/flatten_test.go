package schedule

import (
	"strings"
	"testing"
)

func TestFlattenLeavesOneAxis(t *testing.T) {
	s := New(testWorkload(t))
	c, err := s.CacheWrite(1)
	if err != nil {
		t.Fatal(err)
	}
	before := s.Stages[c].Tensor.Shape
	if err := s.Flatten(c, 0, 1); err != nil {
		t.Fatal(err)
	}
	g := s.Stages[c]
	if len(g.Axes) != 2 || g.Axes[0].Extent != 1 || g.Axes[1].Extent != before[0]*before[1] {
		t.Errorf("the axes are %v of %v", g.Tensor.Shape, before)
	}
	replayed, err := Replay(s.Workload, s.Trace())
	if err != nil || string(replayed.Trace()) != string(s.Trace()) {
		t.Errorf("%v: got\n%s\nwant\n%s", err, replayed.Trace(), s.Trace())
	}
}

func TestFlattenRefuses(t *testing.T) {
	for name, c := range map[string]struct{ trace, want string }{
		"an output":        {"flatten 2 0 1", "flatten: stage 2 is an output"},
		"a split stage":    {"split 1 0 2 0\nflatten 1 0 1", "flatten: stage 1 was already scheduled"},
		"one axis":         {"flatten 1 0", "[0] are not two or more of the 2 axes"},
		"an axis twice":    {"flatten 1 0 0", "are not two or more of the 2 axes"},
		"falling axes":     {"flatten 1 1 0", "are not two or more of the 2 axes"},
		"reduction axes":   {"flatten 1 0 2", "are not two or more of the 2 axes"},
		"an inlined stage": {"inline 0\nflatten 0 0 1", "flatten: stage 0 is inlined"},
	} {
		_, err := Replay(testWorkload(t), []byte("tilth-trace 1\n"+c.trace+"\n"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
