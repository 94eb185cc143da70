package farm

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/knowledge"
)

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
	handler := tuner.NewHandler(tuner.Config{Conn: base.conn, Lock: base.cfg.Lock.Compute, Logger: cfg.Logger, Models: cfg.Models})
	return base.run(ctx, handler, 1)
}
