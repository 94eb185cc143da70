package farm

import (
	"fmt"
	"regexp"
	"sync"
)

// hopelessBuilds is how many builds of a farm in one process fail alike, before any succeeds, until it gives up: there
// is no other builder, and what this machine lacks does not come by waiting.
const hopelessBuilds = 3

// hopeless watches the builds of such a farm.
type hopeless struct {
	// end is called once, with what is wrong.
	end func(error)

	mu       sync.Mutex
	settled  bool
	last     string
	failures int
}

// numbers differ between builds that fail alike: those of batches, and of folders for temporary files.
var numbers = regexp.MustCompile(`[0-9]+`)

// built hears of a build, and why there was none.
func (h *hopeless) built(failure string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settled = h.settled || failure == ""; h.settled {
		return
	}
	kind := numbers.ReplaceAllString(failure, "")
	if kind != h.last {
		h.last, h.failures = kind, 0
	}
	if h.failures++; h.failures < hopelessBuilds {
		return
	}
	h.settled = true
	h.end(fmt.Errorf("this machine builds nothing: the first %d builds fail alike: %s", hopelessBuilds, failure))
}
