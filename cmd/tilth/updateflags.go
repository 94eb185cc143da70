package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/agent/update"
	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/farm"
	"github.com/tilth-dev/tilth/internal/signing"
)

// updateFlags say whether and how a runner replaces its program by releases that its tracker offers.
type updateFlags struct {
	key          string
	every, trial time.Duration
	downgrade    bool
}

func (f *updateFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.key, "update-key", "", "replace this program by newer releases that the tracker offers and the public key in this `file` signed")
	c.Flags().DurationVar(&f.every, "update-every", 10*time.Minute, "how often to ask for a newer release")
	c.Flags().DurationVar(&f.trial, "update-trial", 2*time.Minute, "how long a new program may take to join the farm")
	c.Flags().BoolVar(&f.downgrade, "update-downgrade", false, "take older releases, too")
}

func (f *updateFlags) check() error {
	if f.every <= 0 || f.trial <= 0 {
		return usagef("--update-every %s, --update-trial %s: want positive times", f.every, f.trial)
	}
	return nil
}

// updater returns the updater of this process; nil where there is none.
func (f *updateFlags) updater(log *slog.Logger) (*update.Updater, error) {
	if f.key == "" {
		return nil, nil
	}
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
		Key: key, Program: program, Version: version, Static: !aot.Loads, Every: f.every, Trial: f.trial, Downgrade: f.downgrade, Logger: log,
	})
}

// updateLabel is the label of devices whose program could not be replaced, with the reason.
const updateLabel = "update"

// mostLabel bounds what a label says.
const mostLabel = 200

// run is a runner's life, with its updates. It does not return when the program was replaced.
func (f *updateFlags) run(ctx context.Context, cfg farm.RunnerConfig) error {
	if update.OnTrial() {
		return onTrial(ctx, cfg)
	}
	u, err := f.updater(cfg.Logger)
	if err != nil {
		return err
	}
	if u == nil {
		return farm.RunRunner(ctx, cfg)
	}
	for {
		if version, why := u.Refused(); version != "" {
			label := version + " failed: " + why
			cfg.Labels = withLabel(cfg.Labels, updateLabel, label[:min(len(label), mostLabel)])
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
			cfg.Logger.Info("the new release joined the farm: going on as that", "version", found)
			return u.Replace(os.Args[1:])
		}
		cfg.Logger.Error("the new release failed: going on as before", "version", found, "error", failed)
		if err := u.Refuse(found, failed); err != nil {
			return err
		}
	}
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	all := map[string]string{key: value}
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

// onTrial joins the farm, leaves it, and says by an error if that was not to be.
func onTrial(ctx context.Context, cfg farm.RunnerConfig) error {
	life, end := context.WithCancel(ctx)
	defer end()
	joined := false
	cfg.Joined = func() { joined = true; end() }
	if err := farm.RunRunner(life, cfg); err != nil {
		return err
	}
	if !joined {
		return errors.New("on trial: ended before it joined the farm")
	}
	return nil
}
