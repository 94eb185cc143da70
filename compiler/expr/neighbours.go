package expr

// Neighbours is the index of the first of n neighbours that v counts, where that is a multiple of n whatever else the
// index is made of; ok is false where it is not known to be.
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
