package farm

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// leastMemoryBytes is what a tracker may take before its collector works harder than usual. One with 10,000 agents
	// connected has more than half of it in use.
	leastMemoryBytes = 960 << 20
	// memoryInterval is how often the limit is reconsidered.
	memoryInterval = 5 * time.Second
)

// limitMemory has the collector keep the process's memory below a limit, or below five quarters of what is in use when
// that is more, until ctx ends. Left alone it takes twice of what is in use, stacks included. Who sets GOMEMLIMIT
// decides himself.
func limitMemory(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	before := debug.SetMemoryLimit(leastMemoryBytes)
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
		debug.SetMemoryLimit(max(leastMemoryBytes, used+used/4))
	}
}
