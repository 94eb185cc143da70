package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner"
	"github.com/tilth-dev/tilth/tuner"
)

// Recorder records sets of one target.
type Recorder struct {
	Compiler *builder.Compiler
	Target   *target.Target
	Numerics schedule.Numerics
	Limits   runner.Limits
	// Launcher is an optional command prefix for timing, such as chrt -f 20.
	Launcher []string
	// Sandbox isolates harnesses; nil means limits only.
	Sandbox *sandbox.Sandbox
	Lock    Lock
	// Dir is the folder of sets, Scratch that of batches.
	Dir, Scratch string
	// Size bounds the number of candidates in a set.
	Size PartOptions
	// Sample, if not 0, records that many schedules of the whole space instead of all schedules of a part. There is
	// no Pilot and there are no Finalists. Each candidate gets as many samples as its time allows, regardless of its
	// speed.
	Sample int
	// Batch is the number of candidates that are built before they are timed.
	Batch int
	// Pilot is the number of trials of a first search of the whole space. The set includes the values of the fastest.
	Pilot int
	// Finalists is the number of fastest candidates that are remeasured at the end, in turns, for a number of Rounds.
	Finalists, Rounds int
	// Progress reports the progress of a task.
	Progress func(Progress)
}

// Lock separates computing from timing on this machine until release is called. hostlock.Lock separates processes.
type Lock interface {
	Compute(context.Context) (release func(), err error)
	Time(context.Context) (release func(), err error)
}

// Progress reports the progress of a task.
type Progress struct {
	Task string
	// Measured counts candidates with an outcome, Failed those of them that failed.
	Measured, Failed, Candidates int
	// Best is the lowest latency so far in seconds, or 0.
	Best float64
}

// Record records the set of a task unless it exists. It returns the set's file.
func (r *Recorder) Record(ctx context.Context, t Task) (string, error) {
	path := filepath.Join(r.Dir, r.fileName(t)+Suffix)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := r.record(ctx, t, path); err != nil {
		return "", fmt.Errorf("recording %s: %w", t.Name, err)
	}
	return path, nil
}

func (r *Recorder) record(ctx context.Context, t Task, path string) error {
	by, err := registry.Of(r.Target)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(r.Scratch, "record-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	m := &measurer{Recorder: r, device: by.Device(r.Target), workload: t.Workload, dir: dir}
	set := &Set{Header: Header{Task: t.Name, Model: t.Model, Workload: t.Workload, Target: r.Target, Numerics: r.Numerics, Sampled: r.Sample > 0}}
	s, err := set.Space()
	if err != nil {
		return err
	}
	if set.Sampled {
		if err := m.measureAll(ctx, set, drawSample(s, r.Sample)); err != nil {
			return err
		}
		return Write(path, set)
	}
	size := r.Size
	if size.Measured, err = m.pilot(ctx, s, r.Pilot); err != nil {
		return err
	}
	set.Values = Part(s, size)
	if s, err = set.Space(); err != nil {
		return err
	}
	if err := m.measureAll(ctx, set, Candidates(s, 0)); err != nil {
		return err
	}
	if err := m.remeasure(ctx, set, s); err != nil {
		return err
	}
	return Write(path, set)
}

// measureAll measures candidates in random order, so that a drifting machine affects all values of a knob alike.
func (m *measurer) measureAll(ctx context.Context, set *Set, open []Candidate) error {
	all := len(open)
	rand.New(rand.NewPCG(1, 3)).Shuffle(all, func(a, b int) { open[a], open[b] = open[b], open[a] })
	for len(open) > 0 {
		n := min(m.Batch, len(open))
		points, err := m.measure(ctx, open[:n])
		if err != nil {
			return err
		}
		set.Points, open = append(set.Points, points...), open[n:]
		m.Progress(progressOf(set, all))
	}
	return nil
}

func progressOf(set *Set, candidates int) Progress {
	p := Progress{Task: set.Task, Measured: len(set.Points), Candidates: candidates, Best: set.Best()}
	for k := range set.Points {
		if set.Points[k].Error != "" {
			p.Failed++
		}
	}
	return p
}

// fileName returns the file name of a task's set without the suffix. Names of samples include the model, because
// different models reuse task names.
func (r *Recorder) fileName(t Task) string {
	name := fileName(t.Name)
	if r.Sample > 0 {
		name = name[:min(len(name), longestName)] + "." + t.Workload.Digest()[:8]
	}
	return name
}

// longestName bounds the task's name in a sample's file name.
const longestName = 120

// fileName converts a task's name to a file name. Characters other than letters, digits and those of shapes become
// underscores.
func fileName(task string) string {
	clean := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '-':
			return c
		}
		return '_'
	}, strings.ReplaceAll(task, " -> ", "-"))
	return clean
}

// measurer measures candidates of one workload.
type measurer struct {
	*Recorder
	device   *backend.Device
	workload *expr.Workload
	dir      string
	// calibration tracks disturbances of the machine.
	calibration runner.Calibration
	// best is the fastest point so far, or nil. Clearly slower candidates get few samples.
	best *Point
}

func (m *measurer) note(p *Point) {
	if l := p.LatencySeconds(); l > 0 && (m.best == nil || l < m.best.LatencySeconds()) {
		m.best = &Point{Samples: slices.Clone(p.Samples)}
	}
}

// measure builds and times candidates. Each gets an outcome.
func (m *measurer) measure(ctx context.Context, list []Candidate) ([]Point, error) {
	if m.Sample > 0 {
		return m.turns(ctx, list, 1, &Point{})
	}
	return m.turns(ctx, list, 1, cmp.Or(m.best, &Point{}))
}

// turns builds candidates and times each for a number of rounds, in turns with the incumbent. An incumbent without
// samples is ignored.
func (m *measurer) turns(ctx context.Context, list []Candidate, rounds int, incumbent *Point) ([]Point, error) {
	dir, err := os.MkdirTemp(m.dir, "batch-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	points, at := make([]Point, len(list)), map[string]int{}
	batch := builder.Batch{Workload: m.workload, Target: m.Target}
	for k, c := range list {
		points[k].Origin, at[c.Digest] = c.Origin, k
		batch.Candidates = append(batch.Candidates, builder.Candidate{Digest: c.Digest, Trace: c.Trace})
	}
	built, err := m.build(ctx, dir, batch)
	if err != nil {
		return nil, err
	}
	for k, o := range built.Outcomes {
		points[k].Error, points[k].Message = wire.ErrorClass(o.Error), o.Message
	}
	if len(built.Objects) == 0 {
		return points, nil
	}
	release, err := m.Lock.Time(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	for range rounds {
		err := runner.Measure(ctx, m.plan(built, incumbent), func(o runner.Outcome) { m.take(&points[at[o.Kernel]], o) })
		if err != nil {
			return nil, err
		}
	}
	return points, nil
}

func (m *measurer) build(ctx context.Context, dir string, batch builder.Batch) (*builder.Built, error) {
	release, err := m.Lock.Compute(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return m.Compiler.Build(ctx, dir, batch)
}

func (m *measurer) plan(built *builder.Built, incumbent *Point) runner.Plan {
	return runner.Plan{Device: m.device, Harness: built.Harness, Reference: built.Reference, Candidates: built.Objects, Alike: m.Sample > 0, // of what is learnt from, slow ones teach as much as fast ones
		Emulator: m.Launcher, Threads: m.Target.Threads(),
		Seed: 1, BestSeconds: incumbent.LatencySeconds(), BestSamples: incumbent.Samples, Calibration: &m.calibration, Sandbox: m.Sandbox, Limits: m.Limits,
		ReferenceCache: filepath.Join(m.dir, "reference-results")}
}

// take adds an outcome to a point. A single failure fails the point.
func (m *measurer) take(p *Point, o runner.Outcome) {
	switch {
	case o.Error != tilthv1.ErrorClass_ERROR_CLASS_NONE:
		p.Error, p.Message, p.Samples = wire.ErrorClass(o.Error), o.Message, nil
	case p.Error == "":
		p.Samples = append(p.Samples, o.Samples...)
		m.note(p)
	}
}

// pilot searches the whole space and returns the fastest tenth of its trials, fastest first.
func (m *measurer) pilot(ctx context.Context, whole *searchspace.Space, trials int) (origins []string, err error) {
	search, err := tuner.NewSearch(whole, nil, tuner.Options{Algorithm: "ga", Seed: 1})
	if err != nil {
		return nil, err
	}
	var all []Point
	for len(all) < trials {
		var list []Candidate
		for _, c := range search.Propose(min(m.Batch, trials-len(all))) {
			list = append(list, Candidate{Point: c.Point, Origin: c.Origin, Digest: c.Digest, Trace: c.Trace})
		}
		if len(list) == 0 {
			break
		}
		points, err := m.measure(ctx, list)
		if err != nil {
			return nil, err
		}
		for k, p := range points {
			search.Observe(tuner.Trial{Digest: list[k].Digest, Origin: p.Origin, LatencySeconds: p.LatencySeconds(), Failed: p.Error != ""})
		}
		all = append(all, points...)
	}
	for _, p := range fastest(all, (len(all)+9)/10) {
		origins = append(origins, p.Origin)
	}
	return origins, nil
}

// fastest returns up to n successful points, fastest first.
func fastest(points []Point, n int) []Point {
	list := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.Error != "" })
	slices.SortStableFunc(list, func(a, b Point) int { return cmp.Compare(a.LatencySeconds(), b.LatencySeconds()) })
	return list[:min(n, len(list))]
}

// remeasure measures the fastest candidates of a set again in turns, so that neither a lucky sample nor a disturbance
// decides which is best. The new samples replace the first ones.
func (m *measurer) remeasure(ctx context.Context, set *Set, s *searchspace.Space) error {
	at := map[string]int{}
	for k, p := range set.Points {
		at[p.Origin] = k
	}
	var list []Candidate
	for _, p := range fastest(set.Points, m.Finalists) {
		if point, ok := s.Parse(p.Origin); ok {
			if c, ok := candidateOf(s, point); ok {
				list = append(list, c)
			}
		}
	}
	if len(list) == 0 || m.Rounds == 0 {
		return nil
	}
	points, err := m.turns(ctx, list, m.Rounds, &Point{})
	if err != nil {
		return err
	}
	for _, p := range points {
		set.Points[at[p.Origin]] = p
	}
	return nil
}
