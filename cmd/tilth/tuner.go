package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/farm"
)

const tunerLong = `Run a tuner: it leases jobs and proposes candidates.

A tuner also reads models for clients without a compiler, in a sandboxed process with
limits of memory and time. Unavailable sandbox layers are logged; with --sandbox
required, the tuner does not start without them.`

func newTuner(a *app) *cobra.Command {
	var flags agentFlags
	var model costModelFlag
	var box sandboxFlag
	c := &cobra.Command{
		Use: "tuner", Short: "Run a tuner: it leases jobs and proposes candidates", Long: tunerLong,
		Example: "  tilth tuner --tracker 127.0.0.1:9190\n  tilth tuner --cost-model model.txt",
	}
	flags.add(c)
	model.add(c)
	box.add(c)
	return a.service(c, flags.site.check, func(ctx context.Context) error {
		config, err := flags.config(a)
		if err != nil {
			return err
		}
		models, err := model.models(config.CacheDir)
		if err != nil {
			return err
		}
		config.Logger.Info("tuner starts", "tracker", config.Tracker, "cost_model", cmp.Or(model.file, "learnt from records"))
		return farm.RunTuner(ctx, farm.TunerConfig{AgentConfig: config, Models: models, Read: []string{"tilth", modelServerName}, Sandbox: box.mode})
	})
}
