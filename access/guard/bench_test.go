package guard

import (
	"context"
	"testing"
)

// BenchmarkWatch is what the watch over a call costs it.
func BenchmarkWatch(b *testing.B) {
	l := Limits{}.WithDefaults()
	for b.Loop() {
		ctx, cancel := context.WithCancel(context.Background())
		of(l.watch(ctx)).end()
		cancel()
	}
}
