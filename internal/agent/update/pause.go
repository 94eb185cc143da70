package update

import "time"

// mostPause bounds how long one thing that fails is left alone.
const mostPause = 24 * time.Hour

// pause leaves alone what failed, longer each time.
type pause struct {
	of    string
	times int
	until time.Time
}

// failed counts a failure of something.
func (p *pause) failed(of string, first time.Duration) {
	if p.of != of {
		*p = pause{of: of}
	}
	p.until = time.Now().Add(max(first, min(first<<min(p.times, 8), mostPause)))
	p.times++
}

// holds reports whether something is to be left alone.
func (p *pause) holds(of string) bool { return p.of == of && time.Now().Before(p.until) }
