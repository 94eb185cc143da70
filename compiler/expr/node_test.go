package expr

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// asked is an operand that counts how often it is asked for its type.
type asked struct{ times *int }

func (a asked) DType() array.DType {
	*a.times++
	return array.Float32
}

// TestMultiplyAddStaysOne checks that rebuilding a sum neither loses nor makes a multiply-add.
func TestMultiplyAddStaysOne(t *testing.T) {
	x, v := NewInput("x", array.Float32, 8), &Var{Name: "v", Extent: 8}
	product := MulE(x.At(v), x.At(v))
	apart, fused := AddE(x.At(v), product), FusedBin(Add, x.At(v), product)
	if Same(apart, fused) {
		t.Error("a multiply-add equals a sum of a rounded product")
	}
	same := func(e Expr) Expr { return e }
	for name, rebuild := range map[string]func(Expr) Expr{
		"Rewrite": func(e Expr) Expr { return Rewrite(e, same) }, "Map": func(e Expr) Expr { return Map(e, same) }, "Simplify": Simplify,
		"Substitute": func(e Expr) Expr { return Substitute(e, map[*Var]Expr{v: v}) },
	} {
		if !Same(rebuild(fused), fused) || !Same(rebuild(apart), apart) {
			t.Errorf("%s: %v and %v", name, rebuild(fused), rebuild(apart))
		}
	}
	if _, ok := FusedBin(Add, x.At(v), x.At(v)).(*Binary).Product(); ok {
		t.Error("a sum of loads has a product")
	}
}

// A sum of 16,000 operands asked its first one 16,000 times, through all of the chain.
func TestTypeOfAChainIsFoundOnce(t *testing.T) {
	for name, link := range map[string]func(e Expr) Expr{
		"binary": func(e Expr) Expr { return AddE(e, F(array.Float32, 1)) },
		"unary":  func(e Expr) Expr { return Un(Neg, e) },
		"select": func(e Expr) Expr { return Sel(&Var{Name: "c"}, e, F(array.Float32, 1)) },
	} {
		count := func(length int) (times int) {
			var e Expr = asked{&times}
			for range length {
				e = link(e)
			}
			if d := e.DType(); d != array.Float32 {
				t.Errorf("a %s chain is of %v", name, d)
			}
			return times
		}
		if one, many := count(1), count(1000); many != one {
			t.Errorf("a %s chain of one asks its operand %d times, one of 1000 %d times", name, one, many)
		}
	}
}

func TestZerosOfDifferentSignDiffer(t *testing.T) {
	if zero, negative := F(array.Float32, 0), F(array.Float32, math.Copysign(0, -1)); Same(zero, negative) || !Same(negative, F(array.Float32, math.Copysign(0, -1))) {
		t.Errorf("%v and %v", zero, negative)
	}
}
