package policy

import (
	"math/rand/v2"
	"time"
)

// Backoff returns a delay that doubles with the number of earlier attempts, up to longest. The upper half is random,
// so that simultaneous failures are not retried simultaneously.
func Backoff(first, longest time.Duration, before int) time.Duration {
	wait := longest
	if before < 30 && first < longest>>max(before, 0) {
		wait = first << max(before, 0)
	}
	return wait/2 + rand.N(wait/2+1)
}
