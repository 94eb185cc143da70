package expr

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// asked is an operand that counts how often it is asked for its type.
type asked struct{ times *int }

func (a asked) DType() array.DType {
	*a.times++
	return array.Float32
}

// A sum of 16,000 operands asked its first one 16,000 times, through all of the chain.
func TestTheTypeOfAChainIsFoundOnce(t *testing.T) {
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
