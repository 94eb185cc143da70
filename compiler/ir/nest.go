package ir

// StepNest are the loops around a store, of which each is all of the body of the one around it; nil where there are
// others.
func StepNest(b Block) (loops []*For, store *Store) {
	for len(b) == 1 {
		switch n := b[0].(type) {
		case *For:
			if n.Kind != Serial && n.Kind != Unrolled {
				return nil, nil
			}
			loops, b = append(loops, n), n.Body
		case *Store:
			return loops, n
		default:
			return nil, nil
		}
	}
	return nil, nil
}
