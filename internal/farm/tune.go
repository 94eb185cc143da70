package farm

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

// Tune tunes models for this machine without a separate tracker: the services run in this process until the
// job has ended, and measurements go to the records file. The options' device and patience are ignored, and
// their threads apply if the configuration has no target. Otherwise it works like jobclient.Tune. cfg must have
// Records and CacheDir. The defaults of the rest are this machine, the newest compiler, and no logger.
func Tune(ctx context.Context, cfg LocalConfig, sources []jobclient.Source, o jobclient.TuneOptions) (_ *jobclient.Result, err error) {
	if err := cfg.complete(ctx, o.Threads); err != nil {
		return nil, err
	}
	objective, err := jobclient.Models(sources, o.Numerics, o.WeightBits)(cfg.Target)
	if err != nil {
		return nil, err
	}
	f, err := StartLocal(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Stop()) }()
	bound, done := f.Bound(ctx)
	defer done()
	o.Owner = LocalOwner
	j, err := f.Client.Submit(bound, jobclient.SpecFor(objective, o.Options, &client.Device{Target: cfg.Target}))
	if err != nil {
		return nil, err
	}
	r, err := jobclient.Await(bound, f.Client, j, o.Progress)
	if r != nil {
		r.Tracker, r.Records = "", cfg.Records
	}
	return r, err
}

// complete sets defaults.
func (cfg *LocalConfig) complete(ctx context.Context, threads int) (err error) {
	if cfg.Records == "" || cfg.CacheDir == "" {
		return errors.New("local farm: it needs a records file and a folder for what it keeps")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if m := &cfg.Models; m.Given == nil && m.Prior == nil && m.Dir == "" {
		m.Dir = filepath.Join(cfg.CacheDir, "models")
	}
	if cfg.Toolchain == nil {
		if cfg.Toolchain, err = toolchain.Find(ctx, ""); err != nil {
			return err
		}
	}
	if cfg.Target == nil {
		if cfg.Target, err = target.Native(threads); err != nil {
			return err
		}
	}
	cfg.Target = cfg.Target.WithToolchain(cfg.Toolchain.For(cfg.Target))
	return nil
}
