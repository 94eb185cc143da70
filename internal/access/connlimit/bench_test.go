package connlimit

import (
	"context"
	"testing"
	"time"
)

// BenchmarkWatch measures the cost of the guard per call.
func BenchmarkWatch(b *testing.B) {
	r, conn := newMemoryBudget(1<<30, time.Second), int64(0)
	for b.Loop() {
		ctx, cancel := context.WithCancel(context.Background())
		in := &intake{budget: r, account: account{caller: "shelf-1", conn: &conn}}
		in.open()
		c := callFrom(watch(ctx, "/test.Service/Echo", time.Minute, in))
		c.end()
		in.settle()
		c.over()
		cancel()
	}
}
