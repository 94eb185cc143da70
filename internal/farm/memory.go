package farm

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// minMemoryBytes is the memory that a tracker may use before garbage collection becomes more frequent.
	// A tracker with 10,000 connected agents has more than half of it in use.
	minMemoryBytes = 960 << 20
	// memoryInterval is the interval at which the limit is adjusted.
	memoryInterval = 5 * time.Second
)

// limitMemory keeps the memory of the process below a limit, or below five quarters of the memory in use if
// that is more, until ctx ends. By default the collector would allow twice the memory in use, including
// stacks. GOMEMLIMIT overrides this limit.
func limitMemory(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	before := debug.SetMemoryLimit(minMemoryBytes)
	defer debug.SetMemoryLimit(before)
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(inUse)
		used := int64(inUse[0].Value.Uint64() + inUse[1].Value.Uint64())
		debug.SetMemoryLimit(max(minMemoryBytes, used+used/4))
	}
}
