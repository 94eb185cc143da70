package ir

// StepNest returns the perfectly nested loops around a store, or nil if the nest is not perfect.
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
