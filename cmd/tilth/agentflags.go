package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/farm"
)

// agentFlags are those of every agent.
type agentFlags struct {
	tracker, name, cache string
	slots                int
	log                  logFlag
}

func (f *agentFlags) add(c *cobra.Command) {
	trackerFlag(c, &f.tracker, defaultTracker)
	c.Flags().StringVar(&f.name, "name", "", "`name` of this agent, unique in the farm (default HOST/"+c.Name()+")")
	c.Flags().IntVar(&f.slots, "slots", 0, "leases to hold at a time (0 = what suits the kind)")
	c.Flags().StringVar(&f.cache, "cache", "", "`folder` for what may be used again (default $XDG_CACHE_HOME/tilth)")
	f.log.add(c, slog.LevelInfo)
}

// trackerFlag adds --tracker.
func trackerFlag(c *cobra.Command, tracker *string, byDefault string) {
	c.Flags().StringVar(tracker, "tracker", byDefault, "`address` of the tracker: host:port or unix:PATH")
}

// config is the part of an agent's configuration that the flags say.
func (f *agentFlags) config(a *app) (farm.AgentConfig, error) {
	if f.slots < 0 {
		return farm.AgentConfig{}, usagef("--slots %d: want a number of leases, or 0", f.slots)
	}
	cache := f.cache
	if cache == "" {
		var err error
		if cache, err = cacheDir(); err != nil {
			return farm.AgentConfig{}, err
		}
	}
	return farm.AgentConfig{
		Tracker: f.tracker, Name: f.name, Slots: f.slots, CacheDir: cache, Version: version, Logger: f.log.logger(a.stderr),
	}, nil
}
