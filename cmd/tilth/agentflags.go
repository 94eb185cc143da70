package main

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/wire"
)

// agentFlags holds the flags of every agent.
type agentFlags struct {
	tracker     trackerFlags
	name, cache string
	slots       int
	site        siteFlags
	drain       time.Duration
	log         logFlag
}

func (f *agentFlags) add(c *cobra.Command) {
	f.tracker.add(c, defaultTracker)
	c.Flags().StringVar(&f.name, "name", "", "`name` of this agent, unique in the farm (default HOST/"+c.Name()+")")
	c.Flags().IntVar(&f.slots, "slots", 0, "leases held at a time (0 = what suits the kind of agent)")
	c.Flags().StringVar(&f.cache, "cache", "", "cache `folder` (default $XDG_CACHE_HOME/tilth)")
	f.site.add(c)
	c.Flags().DurationVar(&f.drain, "drain", 10*time.Second, "shutdown grace for leased work; the rest is returned")
	f.log.add(c, slog.LevelInfo)
}

// check validates the flags.
func (f *agentFlags) check() error {
	if f.slots < 0 {
		return usagef("--slots %d: want a number of leases, or 0", f.slots)
	}
	if err := f.site.check(); err != nil {
		return err
	}
	if f.drain <= 0 {
		return usagef("--drain %s: want a positive time", f.drain)
	}
	return nil
}

// config returns the configuration of an agent from the flags.
func (f *agentFlags) config(a *app) (farm.AgentConfig, error) {
	cache := f.cache
	if cache == "" {
		var err error
		if cache, err = cacheDir(); err != nil {
			return farm.AgentConfig{}, err
		}
	}
	cache, err := filepath.Abs(cache) // sandboxed processes have a different working folder
	if err != nil {
		return farm.AgentConfig{}, fmt.Errorf("--cache %s: %w", f.cache, err)
	}
	return farm.AgentConfig{
		Tracker: f.tracker.addr, Proof: f.tracker.proof, Name: f.name, Slots: f.slots, CacheDir: cache, DrainGrace: f.drain,
		HTTP: f.site.addr, Version: version, Logger: f.log.logger(a.stderr),
	}, nil
}

// siteFlags configures the web pages of an agent.
type siteFlags struct {
	addr     string
	insecure bool
}

func (f *siteFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.addr, "http", "", "`address` to serve metrics and health on: host:port or unix:PATH; empty = nowhere")
	c.Flags().BoolVar(&f.insecure, "http-insecure", false, "serve them to other machines too, without encryption or passwords; they are read-only")
}

// check prevents accidental exposure of an agent's pages.
func (f *siteFlags) check() error {
	if f.addr == "" {
		return nil
	}
	if err := wire.CheckAddress(f.addr); err != nil {
		return usagef("--http: %w", err)
	}
	if f.insecure || certs.IsLocal(f.addr) {
		return nil
	}
	return fmt.Errorf("--http %s can be reached by others: serve on 127.0.0.1, or use --http-insecure", f.addr)
}
