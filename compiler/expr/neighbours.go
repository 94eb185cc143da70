package expr

// Neighbours returns the index of the first of n neighbours that v counts, if that is always a multiple of n; ok is
// false if this is not known.
func Neighbours(index Expr, v *Var, n int64) (first Expr, ok bool) {
	at := Linearize(index)
	if coef, linear := at.Coef(v); !linear || coef != 1 {
		return nil, false
	}
	at = at.Plus(Linearize(v), -1)
	if at.Const%n != 0 {
		return nil, false
	}
	for _, t := range at.Terms {
		if t.Coef%n != 0 {
			return nil, false
		}
	}
	return at.Expr(), true
}
