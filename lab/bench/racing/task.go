package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/model"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/atomicfile"
	"github.com/tilth-dev/tilth/runner"
)

// bench is what all tasks share.
type bench struct {
	options
	target      *target.Target
	backend     backend.Backend
	compiler    *builder.Compiler
	calibration *runner.Calibration
}

func newBench(ctx context.Context, o options) (*bench, error) {
	t, err := registry.Target(o.target, o.threads)
	if err != nil {
		return nil, err
	}
	by, err := registry.Of(t)
	if err != nil {
		return nil, err
	}
	tc, err := toolchain.Find(ctx, os.Getenv(toolchain.Variable))
	if err != nil {
		return nil, err
	}
	cache, err := builder.OpenCache(filepath.Join(o.dir, "objects"), 0)
	if err != nil {
		return nil, err
	}
	compiler := &builder.Compiler{Toolchain: tc, Cache: cache, Parallel: target.Processors()}
	return &bench{options: o, target: t, backend: by, compiler: compiler, calibration: &runner.Calibration{}}, nil
}

// workloads are the target's tasks to take, with their names.
func (b *bench) workloads() (names []string, list []*expr.Workload, err error) {
	m, err := b.read()
	if err != nil {
		return nil, nil, err
	}
	p, err := frontend.Import(m, frontend.Options{Storage: b.backend.Storage(b.target, schedule.Default, array.Invalid)})
	if err != nil {
		return nil, nil, err
	}
	for k, t := range p.Tasks {
		if k >= b.skip && len(list) < b.tasks {
			names, list = append(names, t.Name), append(list, t.Workload)
		}
	}
	return names, list, nil
}

func (o options) read() (*onnx.Model, error) {
	if strings.HasSuffix(o.model, ".onnx") {
		return onnx.ReadFile(o.model)
	}
	return model.Build(o.model, model.Options{Seed: 1})
}

// task is what was built of a workload; it is kept as JSON beside the objects.
type task struct {
	Name, Dir           string
	Candidates, Objects []string
	Reference, Harness  string
}

// build compiles a task's candidates unless an earlier run did.
func (b *bench) build(ctx context.Context, name string, w *expr.Workload) (*task, error) {
	t := &task{Name: name, Dir: filepath.Join(b.dir, w.Digest()[:16])}
	list := filepath.Join(t.Dir, "task.json")
	text, err := os.ReadFile(list)
	if err == nil {
		if err := json.Unmarshal(text, t); err != nil {
			return nil, fmt.Errorf("%s: %w", list, err)
		}
		t.Harness, err = b.compiler.Cache.Get(ctx, b.compiler.Toolchain, b.backend.Harness(b.target)) // it may have changed since
		return t, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return nil, err
	}
	built, err := b.compiler.Build(ctx, t.Dir, builder.Batch{Workload: w, Target: b.target, Candidates: b.choose(w)})
	if err != nil {
		return nil, err
	}
	t.Objects, t.Reference, t.Harness = built.Objects, built.Reference, built.Harness
	for _, o := range built.Outcomes {
		if o.Error == none {
			t.Candidates = append(t.Candidates, o.Candidate)
		}
	}
	if len(t.Candidates) < 2 {
		return nil, errNoCandidates
	}
	return t, atomicfile.Write(list, func(w io.Writer) error { return json.NewEncoder(w).Encode(t) })
}

// choose takes the default, the hand-written points, points that differ from the default in one knob, which are close,
// and random ones.
func (b *bench) choose(w *expr.Workload) (list []builder.Candidate) {
	s := b.backend.Space(w, b.target, schedule.Default)
	rng := rand.New(rand.NewPCG(1, 2))
	near := s.Neighbours(s.Default())
	s.Sort(near)
	points := slices.Concat([]space.Point{s.Default()}, near[:min(len(near), b.candidates/2)], s.Seeds())
	for range b.candidates {
		if p, ok := s.Random(rng); ok {
			points = append(points, p)
		}
	}
	seen := map[string]bool{}
	for _, p := range points {
		applied, err := s.Apply(p)
		if err != nil || len(list) == b.candidates {
			continue
		}
		trace := applied.Trace()
		if d := schedule.Digest(trace); !seen[d] {
			seen[d] = true
			list = append(list, builder.Candidate{Digest: d, Trace: trace})
		}
	}
	return list
}
