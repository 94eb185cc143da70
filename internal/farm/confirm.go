package farm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner"
)

// ConfirmConfig configures a Confirmer.
type ConfirmConfig struct {
	// Target must run on this machine.
	Target    *target.Target
	Toolchain *toolchain.Toolchain
	// CacheDir holds results and caches.
	CacheDir string
	// Lock is the host's lock.
	Lock *hostlock.Lock
}

// Confirmer measures schedules from other machines before they are trusted. It caches results, so that each
// schedule is measured once.
type Confirmer struct {
	ConfirmConfig
	backend  backend.Backend
	compiler *builder.Compiler
	box      *sandbox.Sandbox
	found    *filesystem.LRUDir
	scratch  string
	seed     uint64
}

// Confirmation is the result of measuring a schedule on this machine.
type Confirmation struct {
	// Seconds and DefaultSeconds are the latencies of the schedule and of the default schedule, measured in
	// turns; 0 if unknown.
	Seconds        float64 `json:"latency_s"`
	DefaultSeconds float64 `json:"default_latency_s"`
	RelativeError  float64 `json:"relative_error"`
	// Refused is the reason not to trust the schedule. It is empty if the schedule is correct and not
	// measurably slower than the default.
	Refused string `json:"refused,omitempty"`
}

// maxFound bounds the folder of results. A confirmation takes about a hundred bytes.
const maxFound = 16 << 20

// OpenConfirmer returns a confirmer. The caller must close it.
func OpenConfirmer(cfg ConfirmConfig) (_ *Confirmer, err error) {
	c := &Confirmer{ConfirmConfig: cfg, seed: dataSeed()}
	if c.backend, err = registry.Of(cfg.Target); err != nil {
		return nil, fmt.Errorf("confirm: %w", err)
	}
	if c.found, err = filesystem.OpenLRU(filepath.Join(cfg.CacheDir, "confirmed"), maxFound); err != nil {
		return nil, fmt.Errorf("confirm: %w", err)
	}
	cache, err := builder.OpenCache(filepath.Join(cfg.CacheDir, "builds"), 0)
	if err != nil {
		return nil, fmt.Errorf("confirm: %w", err)
	}
	if c.scratch, err = os.MkdirTemp("", "tilth-confirm-"); err != nil {
		return nil, fmt.Errorf("confirm: %w", err)
	}
	if c.box, err = sandbox.Open(sandbox.BestEffort, filepath.Join(c.scratch, "sandbox")); err != nil {
		return nil, errors.Join(fmt.Errorf("confirm: %w", err), os.RemoveAll(c.scratch))
	}
	c.compiler = &builder.Compiler{Toolchain: cfg.Toolchain.In(c.box), Cache: cache, Parallel: runtime.NumCPU(),
		OwnKernels: true} // the caller has already allowed the record's kernel
	return c, nil
}

// Close releases everything except the cached results.
func (c *Confirmer) Close() error { return errors.Join(c.box.Close(), os.RemoveAll(c.scratch)) }

// Confirm measures a schedule against the default schedule of its workload, or returns the cached result.
func (c *Confirmer) Confirm(ctx context.Context, s, standard *schedule.Schedule) (Confirmation, error) {
	name := c.name(s)
	if known, ok := c.known(name); ok {
		return known, nil
	}
	found, err := c.measure(ctx, s, standard)
	if err != nil {
		return found, fmt.Errorf("confirm: %w", err)
	}
	err = filesystem.WriteFile(c.found.Path(name), func(w io.Writer) error { return json.NewEncoder(w).Encode(found) })
	if err == nil {
		err = c.found.Evict(name)
	}
	if err != nil {
		return found, fmt.Errorf("confirm: %w", err)
	}
	return found, nil
}

// name returns the file name of a schedule's result.
func (c *Confirmer) name(s *schedule.Schedule) string {
	sum := sha256.New()
	for _, part := range []string{c.Target.Fingerprint(), s.Workload.Digest(), schedule.Digest(s.Trace())} {
		fmt.Fprintln(sum, part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// known returns a cached result. An unreadable one counts as missing.
func (c *Confirmer) known(name string) (known Confirmation, ok bool) {
	if !c.found.Touch(name) {
		return known, false
	}
	text, err := os.ReadFile(c.found.Path(name))
	return known, err == nil && json.Unmarshal(text, &known) == nil
}

// measure builds both schedules and measures them in turns.
func (c *Confirmer) measure(ctx context.Context, s, standard *schedule.Schedule) (found Confirmation, err error) {
	dir, err := os.MkdirTemp(c.scratch, "task-")
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	batch := builder.Batch{Workload: s.Workload, Target: c.Target}
	for _, one := range []*schedule.Schedule{s, standard} {
		trace := one.Trace()
		if digest := schedule.Digest(trace); len(batch.Candidates) == 0 || digest != batch.Candidates[0].Digest {
			batch.Candidates = append(batch.Candidates, builder.Candidate{Digest: digest, Trace: trace})
		}
	}
	built, err := c.build(ctx, dir, batch)
	if err != nil {
		return found, err
	}
	var kernels []string
	for _, o := range built.Outcomes {
		switch {
		case o.Error == tilthv1.ErrorClass_ERROR_CLASS_NONE:
			kernels = append(kernels, o.Candidate)
		case o.Candidate == batch.Candidates[0].Digest:
			return Confirmation{Refused: wire.ErrorClass(o.Error) + ": " + o.Message}, nil
		}
	}
	outcomes, err := c.time(ctx, built, kernels)
	if err != nil {
		return found, err
	}
	return judge(outcomes, batch.Candidates), nil
}

func (c *Confirmer) build(ctx context.Context, dir string, batch builder.Batch) (*builder.Built, error) {
	release, err := c.Lock.Compute(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return c.compiler.Build(ctx, dir, batch)
}

func (c *Confirmer) time(ctx context.Context, built *builder.Built, kernels []string) (map[string]runner.Outcome, error) {
	device, lock := c.backend.Device(c.Target), c.Lock
	if device != nil && device.ID != "" {
		lock = lock.On(device.ID)
	}
	release, err := lock.Time(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	outcomes := map[string]runner.Outcome{}
	err = runner.Measure(ctx, runner.Plan{
		Device: device, Harness: built.Harness, Reference: built.Reference, Candidates: built.Objects, Kernels: kernels,
		Finalists: true, Threads: c.Target.Threads(), CPUs: c.Target.Affinity(), Seed: c.seed, Sandbox: c.box,
	}, func(o runner.Outcome) { outcomes[o.Kernel] = o })
	return outcomes, err
}

// judge compares the first candidate with the second, the default schedule, if they differ.
func judge(outcomes map[string]runner.Outcome, candidates []builder.Candidate) Confirmation {
	first := outcomes[candidates[0].Digest]
	if first.Error != tilthv1.ErrorClass_ERROR_CLASS_NONE {
		return Confirmation{Refused: wire.ErrorClass(first.Error) + ": " + first.Message}
	}
	found := Confirmation{Seconds: stats.Of(first.Samples).Median, RelativeError: first.RelativeError}
	last, measured := outcomes[candidates[len(candidates)-1].Digest]
	if !measured || last.Error != tilthv1.ErrorClass_ERROR_CLASS_NONE {
		return found
	}
	found.DefaultSeconds = stats.Of(last.Samples).Median
	if slower(first.Samples, last.Samples) {
		found.Refused = fmt.Sprintf("it takes %s here, and the default schedule %s", humanize.Seconds(found.Seconds), humanize.Seconds(found.DefaultSeconds))
	}
	return found
}

// slower reports whether the first of two interleaved sample lists is slower. With too few samples for a
// statistical test, for example after an examination contradicted the claimed time, it compares the medians.
func slower(first, second []float64) bool {
	switch stats.PairedRatio(second, first).Verdict() {
	case stats.Slower:
		return true
	case stats.TooFewRounds:
		return stats.Of(first).Median > stats.Of(second).Median
	}
	return false
}
