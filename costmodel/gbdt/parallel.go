package gbdt

import (
	"sync"
	"sync/atomic"
)

// shares is the number of parts per worker that work is divided into, for load balance.
const shares = 8

// parallel calls do(0) to do(n-1) concurrently. Calls must write to disjoint memory, so that their order does
// not matter.
func parallel(workers, n int, do func(i int)) {
	part := max(1, n/(workers*shares))
	var next atomic.Int64
	work := func() {
		for {
			end := int(next.Add(int64(part)))
			if end-part >= n {
				return
			}
			for i := end - part; i < min(end, n); i++ {
				do(i)
			}
		}
	}
	var wg sync.WaitGroup
	for range min(workers, n) - 1 {
		wg.Go(work)
	}
	work() // the caller takes part while the goroutines start
	wg.Wait()
}
