package connlimit

import (
	"context"
	"testing"
	"time"
)

// BenchmarkWatch is what the watch over a call, and the count of what it takes, cost it.
func BenchmarkWatch(b *testing.B) {
	r, conn := newRoom(1<<30, time.Second), int64(0)
	for b.Loop() {
		ctx, cancel := context.WithCancel(context.Background())
		in := &intake{room: r, taker: account{caller: "shelf-1", conn: &conn}}
		in.open()
		c := callFrom(watch(ctx, "/test.Service/Echo", time.Minute, in))
		c.end()
		in.settle()
		c.over()
		cancel()
	}
}
