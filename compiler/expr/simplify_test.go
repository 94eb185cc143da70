package expr

import (
	"math/rand/v2"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"pgregory.net/rapid"
)

// drawIndex draws integer arithmetic as schedules and operators make it.
func drawIndex(t *rapid.T, vars []*Var, depth int) Expr {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		if rapid.Bool().Draw(t, "constant") {
			return I(rapid.Int64Range(-9, 9).Draw(t, "value"))
		}
		return rapid.SampledFrom(vars).Draw(t, "variable")
	}
	sub := func() Expr { return drawIndex(t, vars, depth-1) }
	constant := func() Expr { return I(rapid.Int64Range(1, 12).Draw(t, "constant")) }
	divisor := func() Expr {
		v := rapid.SampledFrom(vars).Draw(t, "variable")
		return rapid.SampledFrom([]Expr{constant(), v, MaxE(v, I(1))}).Draw(t, "divisor")
	}
	switch rapid.IntRange(0, 8).Draw(t, "operator") {
	case 0, 1:
		return AddE(sub(), sub())
	case 2:
		return SubE(sub(), sub())
	case 3:
		return MulE(sub(), divisor())
	case 4, 5:
		return Bin(FloorDiv, sub(), divisor())
	case 6:
		return Bin(FloorMod, sub(), divisor())
	case 7:
		return Bin(rapid.SampledFrom([]BinaryOp{Min, Max}).Draw(t, "extreme"), sub(), sub())
	default:
		return Sel(drawCondition(t, vars, depth-1), sub(), sub())
	}
}

func drawCondition(t *rapid.T, vars []*Var, depth int) Expr {
	op := rapid.SampledFrom([]BinaryOp{Lt, Le, Eq, Ne}).Draw(t, "comparison")
	c := Bin(op, drawIndex(t, vars, depth), drawIndex(t, vars, depth))
	if depth > 0 && rapid.Bool().Draw(t, "both") {
		return Bin(rapid.SampledFrom([]BinaryOp{And, Or}).Draw(t, "logic"), c, drawCondition(t, vars, depth-1))
	}
	return c
}

func drawVars(t *rapid.T) []*Var {
	vars := make([]*Var, rapid.IntRange(1, 3).Draw(t, "variables"))
	for k := range vars {
		vars[k] = &Var{Name: string(rune('x' + k)), Extent: rapid.Int64Range(1, 13).Draw(t, "extent")}
	}
	return vars
}

// meaning evaluates integer and boolean expressions at some values of the variables.
func meaning(e Expr, slots map[*Var]int, at []int64) int64 {
	return (&compiler{slots: slots}).int(e)(&frame{vars: at})
}

// everywhere calls check at all values of the variables.
func everywhere(vars []*Var, check func(slots map[*Var]int, at []int64)) {
	slots, f := map[*Var]int{}, &frame{vars: make([]int64, len(vars))}
	for k, v := range vars {
		slots[v] = k
	}
	for more := true; more; more = f.next(0, (&compiler{}).counts(vars)) {
		check(slots, f.vars)
	}
}

func TestSimplifyKeepsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vars := drawVars(t)
		for _, e := range []Expr{drawIndex(t, vars, 5), drawCondition(t, vars, 3)} {
			simple := Simplify(e)
			everywhere(vars, func(slots map[*Var]int, at []int64) {
				if got, want := meaning(simple, slots, at), meaning(e, slots, at); got != want {
					t.Fatalf("%s became %s: %d, not %d at %v", show(e), show(simple), got, want, at)
				}
			})
		}
	})
}

func TestBoundsHoldAllValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vars := drawVars(t)
		e := drawIndex(t, vars, 5)
		lo, hi, ok := Linearize(e).Bounds()
		if !ok {
			t.Fatalf("%s has no bounds", show(e))
		}
		everywhere(vars, func(slots map[*Var]int, at []int64) {
			if v := meaning(e, slots, at); v < lo || v > hi {
				t.Fatalf("%s is %d at %v, outside of [%d, %d]", show(e), v, at, lo, hi)
			}
		})
	})
}

func TestReplacingIsSubstitutingAndSimplifying(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vars := drawVars(t)
		e := drawIndex(t, vars, 4)
		values := map[*Var]Expr{vars[0]: Simplify(AddE(MulE(vars[len(vars)-1], I(2)), I(1)))}
		replaced := Simplifier{Values: values}.Simplify(e)
		substituted := Substitute(e, values)
		everywhere(vars, func(slots map[*Var]int, at []int64) {
			if got, want := meaning(replaced, slots, at), meaning(substituted, slots, at); got != want {
				t.Fatalf("%s became %s: %d, not %d at %v", show(e), show(replaced), got, want, at)
			}
		})
	})
}

func show(e Expr) string {
	w := &Workload{Stages: []*Tensor{{Body: e}}}
	Walk(e, func(x Expr) {
		if v, ok := x.(*Var); ok && len(w.Stages[0].Axes) < 9 {
			w.Stages[0].Axes = append(w.Stages[0].Axes, v)
		}
	})
	return w.Text()
}

func TestIdentities(t *testing.T) {
	x, y, z := &Var{Name: "i0", Extent: 100}, &Var{Name: "i1", Extent: 64}, &Var{Name: "i2", Extent: 7}
	div := func(a Expr, c int64) Expr { return Bin(FloorDiv, a, I(c)) }
	mod := func(a Expr, c int64) Expr { return Bin(FloorMod, a, I(c)) }
	packed := AddE(MulE(x, I(64)), y)
	cases := map[string]struct{ e, want Expr }{
		"quotient of a packed index":        {div(packed, 64), x},
		"remainder of a packed index":       {mod(packed, 64), y},
		"quotient and remainder recombine":  {AddE(MulE(div(x, 7), I(7)), mod(x, 7)), x},
		"a row within an image recombines":  {AddE(MulE(mod(div(x, 4), 8), I(4)), MulE(div(x, 32), I(32))), MulE(div(x, 4), I(4))},
		"a row of another image does not":   {AddE(mod(div(x, 4), 8), MulE(div(x, 16), I(8))), AddE(mod(div(x, 4), 8), MulE(div(x, 16), I(8)))},
		"by a positive extent, too":         {AddE(MulE(Bin(FloorMod, x, MaxE(z, I(1))), I(3)), MulE(MulE(Bin(FloorDiv, x, MaxE(z, I(1))), MaxE(z, I(1))), I(3))), MulE(x, I(3))},
		"but not by one that may be zero":   {AddE(MulE(Bin(FloorDiv, x, z), z), Bin(FloorMod, x, z)), AddE(MulE(Bin(FloorDiv, x, z), z), Bin(FloorMod, x, z))},
		"scaled, they recombine too":        {AddE(MulE(mod(x, 7), I(3)), MulE(div(x, 7), I(21))), MulE(x, I(3))},
		"a part of a tile":                  {div(AddE(MulE(x, I(8)), z), 16), div(x, 2)},
		"remainder by a multiple of a tile": {mod(AddE(MulE(x, I(8)), z), 16), AddE(z, MulE(mod(x, 2), I(8)))},
		"quotients of quotients":            {div(div(x, 3), 4), div(x, 12)},
		"differences cancel":                {SubE(AddE(x, y), x), y},
		"a minimum that is decided":         {MinE(z, I(7)), z},
		"a maximum that is decided":         {MaxE(SubE(z, I(9)), I(-2)), I(-2)},
		"a comparison that is decided":      {Bin(Lt, z, I(7)), &Int{Value: 1, Type: array.Bool}},
		"an impossible comparison":          {Bin(Lt, x, SubE(x, z)), &Int{Value: 0, Type: array.Bool}},
		"negative offsets round down":       {div(AddE(MulE(x, I(4)), I(-1)), 4), AddE(x, I(-1))},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Simplify(c.e); !Same(got, c.want) {
				t.Errorf("got %s, want %s", show(got), show(c.want))
			}
		})
	}
}

// Deep expressions once took time exponential in their depth.
func TestDeepExpressionsAreLinearizedInTime(t *testing.T) {
	x := &Var{Name: "i0", Extent: 1000}
	rng := rand.New(rand.NewPCG(1, 1))
	var e Expr = x
	for range 150 {
		e = Bin(FloorDiv, AddE(MulE(e, I(3+rng.Int64N(4))), I(5)), I(2+rng.Int64N(3)))
		e = Bin(FloorMod, AddE(MinE(e, I(500+rng.Int64N(9))), x), I(700))
	}
	if simple := Simplify(e); meaning(simple, map[*Var]int{x: 0}, []int64{17}) != meaning(e, map[*Var]int{x: 0}, []int64{17}) {
		t.Error("the value changed")
	}
}

// TestBoundsOfQuotientsAreBoundsOfWhatIsDivided: for all values of the quotients and on either side.
func TestBoundsOfQuotientsAreBoundsOfWhatIsDivided(t *testing.T) {
	x := &Var{Name: "x", Extent: 40}
	quotient := SubE(Bin(FloorDiv, AddE(x, I(2)), I(3)), I(4))
	for _, op := range []BinaryOp{Lt, Le} {
		for end := int64(-3); end < 12; end++ {
			for _, e := range []Expr{Bin(op, quotient, I(end)), Bin(op, I(end), quotient)} {
				simple := Simplifier{}.Simplify(e)
				Walk(simple, func(n Expr) {
					if b, ok := n.(*Binary); ok && b.Op == FloorDiv {
						t.Errorf("operator %v by %d: the bound divides", op, end)
					}
				})
				for at := range x.Extent {
					value := Simplifier{Values: map[*Var]Expr{x: I(at)}}
					if a, b := value.Simplify(e), value.Simplify(simple); !Same(a, b) {
						t.Errorf("operator %v by %d is otherwise at %d", op, end, at)
					}
				}
			}
		}
	}
}
