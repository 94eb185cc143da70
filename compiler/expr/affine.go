package expr

// affineForm is Offset plus the sum of each variable times its coefficient.
type affineForm struct {
	offset int64
	coef   map[*Var]int64
}

// toAffine converts an Int64 expression to an affine form; false if it is not affine.
func toAffine(e Expr) (affineForm, bool) {
	f := affineForm{coef: map[*Var]int64{}}
	ok := f.add(e, 1)
	return f, ok
}

func (f *affineForm) add(e Expr, scale int64) bool {
	switch n := e.(type) {
	case *Int:
		f.offset += scale * n.Value
		return true
	case *Var:
		f.coef[n] += scale
		return true
	case *Binary:
		switch n.Op {
		case Add:
			return f.add(n.A, scale) && f.add(n.B, scale)
		case Sub:
			return f.add(n.A, scale) && f.add(n.B, -scale)
		case Mul:
			if c, ok := n.A.(*Int); ok {
				return f.add(n.B, scale*c.Value)
			}
			if c, ok := n.B.(*Int); ok {
				return f.add(n.A, scale*c.Value)
			}
		}
	}
	return false
}

// bounds returns the smallest and largest value over all values of the variables; false if an extent is unknown.
func (f affineForm) bounds() (lo, hi int64, ok bool) {
	lo, hi = f.offset, f.offset
	for v, c := range f.coef {
		if v.Extent <= 0 {
			return 0, 0, false
		}
		if c > 0 {
			hi += c * (v.Extent - 1)
		} else {
			lo += c * (v.Extent - 1)
		}
	}
	return lo, hi, true
}
