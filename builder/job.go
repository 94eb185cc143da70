package builder

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// job is a batch being built.
type job struct {
	compiler *Compiler
	backend  backend.Backend
	batch    Batch
	dir      string
	slots    chan struct{}
	mu       sync.Mutex // guards built
	built    Built
}

// module returns the build of a group of candidates. Linking has the same limits as compiling.
func (j *job) module(kernels []printed) (b toolchain.Build, err error) {
	defer schedule.RecoverAs(&err)
	list := make([]backend.Printed, len(kernels))
	for k := range kernels {
		list[k] = kernels[k].Printed
	}
	b, err = j.backend.Module(j.batch.Workload, list, j.batch.Target)
	b.Limits = j.compiler.limits(len(kernels))
	return b, err
}

func (j *job) fail(k int, class tilthv1.ErrorClass, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.built.Outcomes[k].Error, j.built.Outcomes[k].Message = class, agent.FailureMessage(err.Error())
}

// run compiles the candidates, the reference and the harness in parallel.
func (j *job) run(ctx context.Context, kernels []printed) error {
	if len(kernels) == 0 && len(j.built.Objects) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	start := func(work func(context.Context) error) {
		wait.Go(func() {
			if err := work(ctx); err != nil {
				cancel(err)
			}
		})
	}
	start(j.reference)
	start(j.harness)
	for _, group := range modules(kernels, max(j.compiler.Parallel, 1)) {
		start(func(ctx context.Context) error { return j.object(ctx, group) })
	}
	wait.Wait()
	if len(j.built.Objects) == 0 {
		j.built.Reference, j.built.Harness = "", ""
	}
	return context.Cause(ctx)
}

// object compiles a group of candidates into one module. If that fails, it bisects the group to isolate the
// failing candidates.
func (j *job) object(ctx context.Context, group []printed) error {
	path, class, err := j.compile(ctx, group)
	switch {
	case err == nil:
		j.mu.Lock()
		defer j.mu.Unlock()
		j.built.Objects = append(j.built.Objects, path)
		j.keep(path, group)
		return nil
	case class == 0:
		return err
	case len(group) == 1:
		j.fail(group[0].index, class, err)
		return nil
	}
	for _, half := range split(group, 2) {
		if err := j.object(ctx, half); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) keep(path string, group []printed) {
	keys := make([]string, len(group))
	for k := range group {
		keys[k] = j.batch.key(group[k].id)
	}
	j.compiler.ObjectCache.add(path, keys)
}

// compile compiles one module. The class is zero if the candidates are not the cause of the error.
func (j *job) compile(ctx context.Context, group []printed) (string, tilthv1.ErrorClass, error) {
	module, err := j.module(group)
	if err != nil {
		return "", tilthv1.ErrorClass_ERROR_CLASS_BAD_SCHEDULE, err
	}
	path := filepath.Join(j.dir, fmt.Sprintf("candidates-%d-%d.so", group[0].index, len(group)))
	err = j.build(ctx, module, path)
	if err == nil {
		return path, 0, nil
	}
	class, _ := classOf(err)
	return "", class, err
}

// build compiles once a slot is free.
func (j *job) build(ctx context.Context, b toolchain.Build, path string) error {
	select {
	case j.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("builder: %w", context.Cause(ctx))
	}
	defer func() { <-j.slots }()
	return j.compiler.Toolchain.Build(ctx, b, path)
}

func (j *job) reference(ctx context.Context) error {
	b, err := j.referenceBuild()
	if err != nil {
		return fmt.Errorf("builder: the reference: %w", err)
	}
	j.built.Reference, err = j.compiler.Cache.Get(ctx, j.compiler.Toolchain, b)
	return err
}

func (j *job) referenceBuild() (b toolchain.Build, err error) {
	defer schedule.RecoverAs(&err)
	return j.backend.Reference(j.batch.Workload, j.batch.Target)
}

func (j *job) harness(ctx context.Context) error {
	b := j.backend.Harness(j.batch.Target)
	var err error
	j.built.Harness, err = j.compiler.Cache.Get(ctx, j.compiler.Toolchain, b)
	return err
}
