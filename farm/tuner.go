package farm

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner"
)

// RunTuner is the life of a tuner, until ctx ends.
func RunTuner(ctx context.Context, cfg AgentConfig) error {
	base, err := begin(cfg, tilthv1.AgentKind_AGENT_KIND_TUNER, "tuner")
	if err != nil {
		return err
	}
	base.spec.Tuners = tuner.Names()
	handler := tuner.NewHandler(tuner.Config{Conn: base.conn, Lock: base.lock.Compute, Logger: cfg.Logger})
	return base.run(ctx, handler, 1)
}
