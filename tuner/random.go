package tuner

// random draws legal points uniformly. It is the baseline for all other searches.
type random struct{ *pool }

// Propose implements Search.
func (r *random) Propose(n int) []Candidate {
	r.reseed()
	return r.fillRandom(r.start(n), n)
}

// Observe implements Search.
func (r *random) Observe(t Trial) { r.observe(t) }
