package space

// Seeds are the points that the sketch knows to be good: a search measures them first. The best analytic cost comes
// first.
func (s *Space) Seeds() []Point { return s.sorted(s.read(s.sketch.Seeds())) }

// read is the points of texts that are legal, each once.
func (s *Space) read(texts []string) []Point {
	var list []Point
	seen := map[string]bool{}
	for _, text := range texts {
		if p, ok := s.Parse(text); ok && !seen[p.Key()] {
			seen[p.Key()] = true
			list = append(list, p)
		}
	}
	return list
}
