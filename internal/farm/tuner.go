package farm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/jobclient"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// tunerSlots lets a tuner search for several jobs at a time, because it mostly waits for builds and measurements.
const tunerSlots = 4

// TunerConfig configures a tuner.
type TunerConfig struct {
	AgentConfig
	// Models provides the cost models.
	Models transfer.Models
	// Read, if set, enables reading the models of jobs in child processes. It is the name and arguments with
	// which this program calls jobclient.ServeModelReader.
	Read []string
	// Sandbox selects how to proceed when an isolation mechanism for these processes is unavailable; empty
	// means sandbox.BestEffort.
	Sandbox sandbox.Mode
}

// RunTuner runs a tuner until ctx ends.
func RunTuner(ctx context.Context, cfg TunerConfig) error {
	base, err := begin(cfg.AgentConfig, tilthv1.AgentKind_AGENT_KIND_TUNER, "tuner")
	if err != nil {
		return err
	}
	base.spec.Tuners = tuner.Names()
	metrics := NewTunerMetrics(base.registry)
	config := tuner.Config{
		Conn: base.conn, Lock: base.meter.Lock(base.cfg.Lock.Compute), Logger: cfg.Logger, Models: cfg.Models, Observer: metrics,
	}
	if len(cfg.Read) == 0 {
		return base.run(ctx, tuner.NewHandler(config), tunerSlots)
	}
	box, err := openSandbox(cfg.Sandbox, base)
	if err != nil {
		return base.end(fmt.Errorf("tuner: %w", err))
	}
	reader, err := base.reader(ctx, cfg.Read, box)
	if err != nil {
		return errors.Join(base.end(fmt.Errorf("tuner: %w", err)), box.Close())
	}
	if reader != nil {
		config.Reader = reader
		base.spec.Capabilities = append(base.spec.Capabilities, wire.ReadsModels)
	}
	return errors.Join(base.run(ctx, tuner.NewHandler(config), tunerSlots), box.Close())
}

// modelCacheBytes has room for the largest readable model and a few small ones. They are kept for modelKeep,
// because models are submitted again with other options.
const (
	modelCacheBytes = 10 << 30
	modelKeep       = time.Hour
)

// reader returns the reader of models, or nil if its process cannot be started.
func (b *base) reader(ctx context.Context, args []string, box *sandbox.Sandbox) (*modelReader, error) {
	models := &jobclient.ModelReader{
		Server: sandbox.Server{Args: args, Sandbox: box, Scratch: b.scratch}, MemoryBytes: sandbox.OwnMemory() / 2,
	}
	if err := models.Try(ctx); err != nil {
		b.cfg.Logger.Warn("this agent reads no models of jobs: no process for them can be started", "error", err)
		return nil, nil
	}
	cache, err := artifact.Open(artifact.Options{
		Dir: filepath.Join(b.scratch, "artifacts"), CapBytes: modelCacheBytes, UploadBytes: modelCacheBytes, Keep: modelKeep, Logger: b.cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &modelReader{artifact.NewClient(b.conn, cache, b.cfg.Logger), models}, nil
}

// modelReader reads models stored at the tracker.
type modelReader struct {
	artifacts *artifact.Client
	models    *jobclient.ModelReader
}

// Read implements tuner.Reader.
func (r *modelReader) Read(ctx context.Context, work *tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error) {
	files := jobclient.ModelFiles{}
	for _, ref := range wire.ModelFiles(work.GetJob().GetSpec().GetModel()) {
		path, release, err := r.artifacts.Download(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("tuner: fetching the files of a model: %w", err)
		}
		defer release()
		files[ref.GetDigest()] = path
	}
	return r.models.Read(ctx, files, work)
}
