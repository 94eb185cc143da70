package cost

// arena allocates zeroed slices that share a lifetime. A candidate takes about a hundred of them.
type arena struct {
	block []float64
	used  int
	// beyond is the amount that did not fit.
	beyond int
}

// take returns n zeros, valid until reset.
func (a *arena) take(n int) []float64 {
	if a.used+n > len(a.block) {
		a.beyond += n
		return make([]float64, n)
	}
	s := a.block[a.used : a.used+n : a.used+n]
	a.used += n
	clear(s)
	return s
}

// reset frees all slices and makes room for the amount taken last.
func (a *arena) reset() {
	if a.beyond > 0 {
		a.block = make([]float64, 2*(a.used+a.beyond))
	}
	a.used, a.beyond = 0, 0
}
