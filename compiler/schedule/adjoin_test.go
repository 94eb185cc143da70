package schedule

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// window is a convolution of a row of 6 pictures' columns with three channels by windows of three.
const window = `tilth-workload 1
input t0 u8[8,3]
constant t1 i8[3,3,5]
sum t2 i32[6,5] over 3,3 = (mul (cast i32 [t0 (add i0 r0) r1]) (cast i32 [t1 r0 r1 i1]))
output t2
`

func TestAdjoinMakesOneAxisOfColumnsAndChannels(t *testing.T) {
	w, err := expr.Parse(window)
	if err != nil {
		t.Fatal(err)
	}
	for trace, terms := range map[string]int64{"adjoin 0 4 0": 12, "adjoin 0 1 0": 9, "adjoin 0 2 6": 10} {
		s, err := Replay(w, []byte("tilth-trace 1\n"+trace+"\n"))
		if err != nil {
			t.Errorf("%q: %v", trace, err)
			continue
		}
		if g := s.Stages[0]; len(g.Reduce) != 1 || g.Reduce[0].Extent != terms {
			t.Errorf("%q: the sum is over %v, want %d terms", trace, g.Reduce, terms)
		}
		if shape := s.Stages[1].Tensor.Shape; len(shape) != 1 || shape[0] != 24+terms-9 {
			t.Errorf("%q: the copy has shape %v, want %d elements", trace, shape, 24+terms-9)
		}
	}
}

func TestAdjoinIsForTermsThatLieSideBySide(t *testing.T) {
	checkTraces(t, map[string]string{
		"adjoin 1 0 0": "adjoin: 0 is not a multiple, or more than 1024",
		"adjoin 1 4 0": "adjoin: stage 1 is not a sum of products of two tensors over two axes",
		"adjoin 9 4 0": "adjoin: there is no stage 9",
	}, nil)
	for name, c := range map[string]struct{ text, trace, want string }{
		"columns that lie apart":       {strings.NewReplacer("r0) r1]", "(mul r0 2)) r1]", "[8,3]", "[10,3]").Replace(window), "adjoin 0 4 0", "are not adjacent"},
		"channels among others":        {strings.Replace(window, "[8,3]", "[8,4]", 1), "adjoin 0 4 0", "are not adjacent"},
		"weights that are no constant": {strings.Replace(window, "constant", "input", 1), "adjoin 0 4 0", "is not a product by a constant"},
		"a type that is too small":     {window, "adjoin 0 4 5", "i8 does not hold all values of u8"},
	} {
		w, err := expr.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Replay(w, []byte("tilth-trace 1\n"+c.trace+"\n")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
