package tuner

// random draws legal points uniformly. It is the baseline for all other searches.
type random struct{ *pool }

// Propose implements Search.
func (r *random) Propose(n int) []Candidate {
	r.reseed()
	list := r.start(n)
	for len(list) < n && r.misses < maxMisses {
		p, ok := r.space.Random(r.rng)
		if !ok {
			break
		}
		if c, ok := r.take(p); ok {
			list = append(list, c)
		}
	}
	return list
}

// Observe implements Search.
func (r *random) Observe(t Trial) { r.observe(t) }
