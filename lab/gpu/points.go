package gpu

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"time"
)

const (
	// pointTime bounds the time of a part, pointTrials its points.
	pointTime   = 45 * time.Second
	pointTrials = 600
)

// points measures random points of random workloads and verifies each against the processor's reference. Conformance
// cases are too small for much of what schedules can do.
func (b *suite) points(ctx context.Context, part int, numerics string, r *result) error {
	seed := seedOf(b.version, part)
	path := b.path("points.onnx")
	if err := os.WriteFile(path, randomModel(seed).Encode(), 0o600); err != nil {
		return err
	}
	s, err := b.tune(ctx, path, b.records(), b.isolation(), pointTrials, pointTime,
		"--numerics", numerics, "--tuner", "random", "--no-transfer", "--seed", strconv.FormatUint(seed, 10))
	if err != nil {
		return err
	}
	r.Values["points"], r.Values["workloads"] = float64(s.Trials), float64(len(s.Tasks))
	r.Notes["seed"] = strconv.FormatUint(seed, 10)
	s.failures(r)
	return b.exportRecords(ctx)
}

// seedOf depends on the version, so that each version draws different workloads.
func seedOf(version string, part int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", version, part)
	return h.Sum64() >> 1
}
