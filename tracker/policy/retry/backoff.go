package retry

import (
	"math/rand/v2"
	"time"
)

// Backoff is a wait that doubles with every one before it, up to the longest; half of it is left to chance, so that
// what failed together does not come back together.
func Backoff(first, longest time.Duration, before int) time.Duration {
	wait := longest
	if before < 30 && first < longest>>max(before, 0) {
		wait = first << max(before, 0)
	}
	return wait/2 + rand.N(wait/2+1)
}
