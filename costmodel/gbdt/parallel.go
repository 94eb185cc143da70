package gbdt

import (
	"sync"
	"sync/atomic"
)

// parallel calls do(0) to do(n-1), several at a time. Each writes only what is its own, so that their order does not matter.
func parallel(workers, n int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var wg sync.WaitGroup
	for range min(workers, n) - 1 {
		wg.Go(work)
	}
	work() // the caller begins at once, while the others wake
	wg.Wait()
}
