package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/agent/update"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/signing"
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
	c.Flags().IntVar(&f.slots, "slots", 0, "leases held at a time (0 = the default of the kind of agent)")
	c.Flags().StringVar(&f.cache, "cache", "", "cache `folder` (default $XDG_CACHE_HOME/tilth)")
	f.site.add(c)
	c.Flags().DurationVar(&f.drain, "drain", 10*time.Second, "shutdown grace for leased work; the rest is returned")
	atLeast(c, 0, "slots")
	atLeast(c, 1, "drain")
	f.log.add(c, slog.LevelInfo)
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
		HTTP: f.site.addr, Version: version, Commit: thisBuild().Commit, Logger: f.log.logger(a.stderr),
	}, nil
}

// siteFlags configures the web pages of an agent.
type siteFlags struct {
	addr     string
	insecure bool
}

func (f *siteFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.addr, "http", "", "`address` to serve metrics and health on: host:port or unix:PATH; empty = nowhere")
	c.Flags().BoolVar(&f.insecure, "http-insecure", false, "serve metrics and health to other machines too, without encryption or passwords; they are read-only")
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

// updateFlags configures how a runner updates itself to releases that its tracker offers.
type updateFlags struct {
	key          string
	every, trial time.Duration
	downgrade    bool
}

func (f *updateFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.key, "update-key", "", "replace this program by newer releases that the tracker offers and the public key in this `file` signed")
	c.Flags().DurationVar(&f.every, "update-every", 10*time.Minute, "update check interval, jittered up to 2x")
	c.Flags().DurationVar(&f.trial, "update-trial", 2*time.Minute, "how long a new program may take to join the farm")
	atLeast(c, 1, "update-every", "update-trial")
	c.Flags().BoolVar(&f.downgrade, "update-downgrade", false, "take older releases, too")
}

// maxUpdateTime bounds the durations.
const maxUpdateTime = 30 * 24 * time.Hour

func (f *updateFlags) check() error {
	if f.every > maxUpdateTime || f.trial > maxUpdateTime {
		return usagef("--update-every %s, --update-trial %s: want at most %s", f.every, f.trial, maxUpdateTime)
	}
	return nil
}

// updater returns the updater of this process.
func (f *updateFlags) updater(log *slog.Logger, lock *hostlock.Lock) (*update.Updater, error) {
	key, err := signing.ReadPublicKey(f.key)
	if err != nil {
		return nil, fmt.Errorf("--update-key: %w", err)
	}
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return nil, fmt.Errorf("finding this program to replace it: %w", err)
	}
	return update.New(update.Config{
		Key: key, Program: program, Version: version, Static: !aot.Loads, Every: f.every, Trial: f.trial, Downgrade: f.downgrade,
		Lock: lock, Logger: log,
	})
}

// updateLabel is the label of devices whose update failed. Its value is the reason.
const updateLabel = "update"

// maxLabel bounds the label's value, in bytes. A device has at most 64 labels, two of which runners add themselves.
const (
	maxLabel  = 200
	maxLabels = 62
)

// run runs a runner with updates. It does not return after replacing the program.
func (f *updateFlags) run(ctx context.Context, cfg farm.RunnerConfig) error {
	if update.OnTrial() {
		return onTrial(ctx, cfg)
	}
	if f.key == "" {
		return farm.RunRunner(ctx, cfg)
	}
	u, err := f.updater(cfg.Logger, cfg.Lock)
	if err != nil {
		return err
	}
	for {
		if version, why := u.Refused(); version != "" {
			cfg.Labels = withLabel(cfg.Labels, updateLabel, version+" failed: "+why)
		}
		found, err := untilRelease(ctx, cfg, u)
		if err != nil || found == "" {
			return err
		}
		failed := u.Try(ctx, found, os.Args[1:])
		if ctx.Err() != nil {
			return nil
		}
		if failed == nil {
			failed = u.Replace()
		}
		if failed == nil {
			cfg.Logger.Info("the new release joined the farm: continuing as the new program", "version", found)
			return u.Exec(os.Args[1:])
		}
		cfg.Logger.Error("the new release failed: continuing as before", "version", found, "error", failed)
		u.Refuse(found, failed)
	}
}

// withLabel adds a label and shortens its value if necessary. It omits the label if there is no room.
func withLabel(labels map[string]string, key, value string) map[string]string {
	if _, has := labels[key]; !has && len(labels) >= maxLabels {
		return labels
	}
	all := map[string]string{key: strings.ToValidUTF8(value[:min(len(value), maxLabel)], "")}
	for k, v := range labels {
		if k != key {
			all[k] = v
		}
	}
	return all
}

// untilRelease runs the runner until the tracker offers a newer program, or ctx ends.
func untilRelease(ctx context.Context, cfg farm.RunnerConfig, u *update.Updater) (found string, err error) {
	life, end := context.WithCancel(ctx)
	defer end()
	cfg.Meanwhile = func(ctx context.Context, conn grpc.ClientConnInterface) {
		if found = u.Watch(ctx, conn); found != "" {
			end()
		}
	}
	err = farm.RunRunner(life, cfg)
	return found, err
}

// onTrial joins and leaves the farm, and returns why that failed.
func onTrial(ctx context.Context, cfg farm.RunnerConfig) error {
	life, end := context.WithCancel(ctx)
	defer end()
	joined := false
	cfg.Joined = func() { joined = true; end() }
	err := farm.RunRunner(life, cfg)
	switch status.Code(err) {
	case codes.Unavailable, codes.Unauthenticated, codes.PermissionDenied, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Canceled:
		return &laterError{err} // the old program would fail, too
	}
	if errors.Is(err, wire.ErrUnreachable) {
		return &laterError{err}
	}
	if err == nil && !joined {
		return &laterError{errors.New("on trial: ended before it joined the farm")}
	}
	return err
}

// laterError is an external failure of a program on trial.
type laterError struct{ error }

func (e *laterError) Unwrap() error { return e.error }
