package farm

import (
	"fmt"
	"regexp"
	"sync"
)

// maxInitialFailures is the number of initial builds that must fail in the same way before a single-process farm
// gives up. It has no other builder, and waiting does not repair this machine.
const maxInitialFailures = 3

// buildFailureGuard stops a farm whose builds all fail in the same way.
type buildFailureGuard struct {
	// end is called once, with the failure.
	end func(error)

	mu       sync.Mutex
	settled  bool
	last     string
	failures int
}

// numbers matches the parts that differ between equal failures: batch numbers and names of temporary folders.
var numbers = regexp.MustCompile(`[0-9]+`)

// built records a build with its failure, or "".
func (h *buildFailureGuard) built(failure string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settled = h.settled || failure == ""; h.settled {
		return
	}
	kind := numbers.ReplaceAllString(failure, "")
	if kind != h.last {
		h.last, h.failures = kind, 0
	}
	if h.failures++; h.failures < maxInitialFailures {
		return
	}
	h.settled = true
	h.end(fmt.Errorf("this machine builds nothing: the first %d builds fail alike: %s", maxInitialFailures, failure))
}
