package update

import "time"

// maxPause bounds how long a failed item is skipped.
const maxPause = 24 * time.Hour

// pause skips a failed item, for longer after each failure.
type pause struct {
	of    string
	times int
	until time.Time
}

// failed records a failure of an item.
func (p *pause) failed(of string, first time.Duration) {
	if p.of != of {
		*p = pause{of: of}
	}
	p.until = time.Now().Add(max(first, min(first<<min(p.times, 8), maxPause)))
	p.times++
}

// holds reports whether an item is being skipped.
func (p *pause) holds(of string) bool { return p.of == of && time.Now().Before(p.until) }
