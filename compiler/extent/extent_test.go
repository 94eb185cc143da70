package extent_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/extent"
)

// symbols returns h in 1..640, w in 0..9, and m, a multiple of 32 in 32..1280.
func symbols() (h, w, m extent.Extent, set *extent.Set) {
	set = &extent.Set{}
	h = set.Add(&extent.Symbol{Name: "h", Min: 1, Max: 640, Step: 1})
	w = set.Add(&extent.Symbol{Name: "w", Min: 0, Max: 9, Step: 1})
	m = set.Add(&extent.Symbol{Name: "m", Min: 32, Max: 1280, Step: 32})
	return h, w, m, set
}

func TestEqualExpressionsHaveOneForm(t *testing.T) {
	h, w, m, _ := symbols()
	n := extent.Of
	for _, c := range []struct{ a, b extent.Extent }{
		{h.Plus(w), w.Plus(h)},
		{h.Plus(n(3)).Minus(h), n(3)},
		{h.Times(w.Plus(n(1))), h.Times(w).Plus(h)},
		{h.Times(w).Times(n(768)).Over(n(768)), h.Times(w)},
		{h.Times(n(768)).Times(w.Plus(n(1))).Over(w.Plus(n(1)).Times(n(64))), h.Times(n(12))},
		{h.Plus(n(1)).Over(n(2)).Plus(n(1)).Over(n(2)), h.Plus(n(3)).Over(n(4))},
		{h.Times(n(3)).Plus(n(1)).Over(n(2)), h.Plus(h.Plus(n(1)).Over(n(2)))},
		{h.Times(n(4)).Over(n(6)), h.Times(n(2)).Over(n(3))},
		{h.Over(n(2)).Times(n(2)).Plus(h.Mod(n(2))), h},
		{m.Over(n(8)).Times(n(8)), m},
		{m.CeilOver(n(64)), m.Plus(n(63)).Over(n(64))},
		{h.Least(n(1 << 62)), h},
		{h.Most(n(0)), h},
		{h.Least(w), w.Least(h)},
		{w.Over(n(10)), n(0)},
		{h.Plus(n(2)).Minus(n(3)).Over(n(1)).Plus(n(1)), h},
	} {
		if c.a != c.b {
			t.Errorf("%v and %v differ", c.a, c.b)
		}
	}
}

func TestBoundsProveOrder(t *testing.T) {
	h, w, m, _ := symbols()
	n := extent.Of
	for _, c := range []struct {
		a, b        extent.Extent
		atMost, lss bool
	}{
		{h, n(640), true, false},
		{h, n(641), true, true},
		{w, h, false, false},
		{h, h.Plus(w), true, false},
		{h.Over(n(2)).Times(n(2)), h, true, false},
		{h.Mod(n(2)), n(2), true, true},
		{h.Over(n(2)), h, true, true},
		{h, h.Times(w.Plus(n(1))), true, false},
		{n(0), h.Times(m.Over(n(32))).Minus(h), true, false},
		{m.Over(n(32)), m, true, true},
		{h.Least(w), w, true, false},
		{h, h.Most(w), true, false},
		{h.Least(n(9)).Most(w), n(9), true, false},
		{h.Times(n(2)).Least(n(9)), h.Times(n(2)).Plus(w), true, false},
	} {
		if got := c.a.AtMost(c.b); got != c.atMost {
			t.Errorf("%v <= %v: %v", c.a, c.b, got)
		}
		if got := c.a.Less(c.b); got != c.lss {
			t.Errorf("%v < %v: %v", c.a, c.b, got)
		}
	}
}

// random returns a random expression and its value for the given symbols.
func random(r *rand.Rand, depth int, leaves []extent.Extent, at func(*extent.Symbol) int64) (e extent.Extent, value int64) {
	if depth == 0 || r.IntN(6) == 0 {
		if r.IntN(3) == 0 {
			n := r.Int64N(13) - 4
			return extent.Of(n), n
		}
		e = leaves[r.IntN(len(leaves))]
		return e, e.At(at)
	}
	a, x := random(r, depth-1, leaves, at)
	b, y := random(r, depth-1, leaves, at)
	switch r.IntN(6) {
	case 0:
		return a.Plus(b), x + y
	case 1:
		return a.Minus(b), x - y
	case 2:
		return a.Times(b), x * y
	case 3:
		return a.Least(b), min(x, y)
	case 4:
		return a.Most(b), max(x, y)
	}
	b = b.Times(b).Plus(extent.Of(1))
	y = y*y + 1
	q := x / y
	if x%y < 0 {
		q--
	}
	return a.Over(b), q
}

func TestRandomExpressionsKeepTheirValue(t *testing.T) {
	for seed := range uint64(3000) {
		func() {
			var err error
			defer func() {
				if err != nil && err != extent.ErrComplex { //nolint:errorlint // this very value
					t.Error(err)
				}
			}()
			defer extent.Catch(&err)
			r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // reproducible
			h, w, m, _ := symbols()
			at := func(s *extent.Symbol) int64 {
				least, most := s.Units()
				return (least + r.Int64N(most-least+1)) * s.Step
			}
			values := map[string]int64{}
			fixed := func(s *extent.Symbol) int64 {
				if _, ok := values[s.Name]; !ok {
					values[s.Name] = at(s)
				}
				return values[s.Name]
			}
			e, want := random(r, 4, []extent.Extent{h, w, m}, fixed)
			if got := e.At(fixed); got != want {
				t.Errorf("seed %d: %v is %d with %v, want %d", seed, e, got, values, want)
			}
			if want < e.Min() || want > e.Max() {
				t.Errorf("seed %d: %v is %d with %v, outside of %d..%d", seed, e, want, values, e.Min(), e.Max())
			}
			again, wrong := extent.Parse(e.String(), func(name string) (extent.Extent, error) {
				return map[string]extent.Extent{"h": h, "w": w, "m": m}[name], nil
			})
			if wrong == nil && again != e || wrong != nil && !strings.Contains(wrong.Error(), "which may be zero") && len(e.String()) < 1000 {
				t.Errorf("seed %d: %v is read as %v, %v", seed, e, again, wrong)
			}
		}()
	}
}

// TestLargeExpressionsAreRefused grows expressions as a hostile model would: each step repeats the one before twice.
func TestLargeExpressionsAreRefused(t *testing.T) {
	for name, grow := range map[string]func(e, h, w extent.Extent) extent.Extent{
		"nested": func(e, h, w extent.Extent) extent.Extent { return e.Over(extent.Of(3)).Plus(w).Least(e.Times(h)) },
		"number": func(e, _, _ extent.Extent) extent.Extent { return e.Times(extent.Of(1 << 20)) },
		"terms": func(e, h, w extent.Extent) extent.Extent {
			return e.Times(h.Plus(w)).Plus(e.Over(h.Plus(extent.Of(7))))
		},
		"many": func(e, _, _ extent.Extent) extent.Extent { return e.Plus(extent.Of(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			err := func() (err error) {
				defer extent.Catch(&err)
				h, w, _, _ := symbols()
				for e := h; ; e = grow(e, h, w) {
				}
			}()
			if !errors.Is(err, extent.ErrComplex) {
				t.Error(err)
			}
		})
	}
}

func TestParseNamesTheFault(t *testing.T) {
	h, _, _, _ := symbols()
	symbol := func(name string) (extent.Extent, error) {
		if name == "h" {
			return h, nil
		}
		return extent.Extent{}, fmt.Errorf("no symbol %q", name)
	}
	for text, want := range map[string]string{
		"h +":                    `extent "h +", position 4: expected a number or a name`,
		"h h":                    `extent "h h", position 3: unexpected "h"`,
		"x":                      `extent "x", position 2: no symbol "x"`,
		"1/(h - 1)":              `extent "1/(h - 1)", position 10: division by h - 1, which may be zero`,
		"min(h":                  `extent "min(h", position 6: expected ","`,
		"9999999999999999999999": `extent "9999999999999999999999", position 23: 9999999999999999999999 is no number, or too large`,
	} {
		if _, err := extent.Parse(text, symbol); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	if e, err := extent.Parse("2*(h + 1) // 4 - max(h, 3)", symbol); err != nil || e.String() != "(h + 1)/2 - max(3, h)" {
		t.Errorf("got %v, %v", e, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("2*(h + 1)/4 - max(h, min(3, h*h))")
	f.Fuzz(func(_ *testing.T, text string) {
		h, _, _, _ := symbols()
		_, _ = extent.Parse(text, func(string) (extent.Extent, error) { return h, nil })
	})
}

func TestShapes(t *testing.T) {
	h, w, _, _ := symbols()
	s := extent.ShapeOf(extent.Of(2), h, w.Plus(extent.Of(1)))
	if got := s.String(); got != "[2 h w + 1]" {
		t.Error(got)
	}
	if got := fmt.Sprint(s.Max(), s.Elements()); got != "[2 640 10] 2*h*w + 2*h" {
		t.Error(got)
	}
	if closed := s.With(1, extent.Of(3)).With(2, extent.Of(4)); closed.IsOpen() || !closed.Equal(extent.Fixed(2, 3, 4)) {
		t.Error(closed)
	}
	var err error
	func() {
		defer extent.Catch(&err)
		s.Fixed()
	}()
	if err == nil || err.Error() != "the extent h of axis 1 is open, which is not supported here: fix it by --shape" {
		t.Error(err)
	}
}
