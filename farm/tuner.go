package farm

import (
	"context"
	"fmt"

	"github.com/tilth-dev/tilth/agent/telemetry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/knowledge"
)

// tunerSlots lets a tuner search for several jobs at a time, since each waits for its builds and measurements mostly.
const tunerSlots = 4

// TunerConfig is what a tuner needs.
type TunerConfig struct {
	AgentConfig
	// Models says where cost models come from.
	Models knowledge.Models
}

// RunTuner is the life of a tuner, until ctx ends.
func RunTuner(ctx context.Context, cfg TunerConfig) error {
	base, err := begin(cfg.AgentConfig, tilthv1.AgentKind_AGENT_KIND_TUNER, "tuner")
	if err != nil {
		return err
	}
	base.spec.Tuners = tuner.Names()
	metrics, err := telemetry.NewTuner(base.registry)
	if err != nil {
		return base.end(fmt.Errorf("tuner: %w", err))
	}
	handler := tuner.NewHandler(tuner.Config{
		Conn: base.conn, Lock: base.meter.Lock(base.cfg.Lock.Compute), Logger: cfg.Logger, Models: cfg.Models, Ear: metrics,
	})
	return base.run(ctx, handler, tunerSlots)
}
