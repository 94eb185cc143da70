package operators

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/internal/stat"
	"github.com/tilth-dev/tilth/runner"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// survey measures points of each workload's space: named points, neighbours of the default, or random ones. It
// reports how well the analytic cost orders them: Spearman's rank correlation, and the slowdown of the default and of
// the cheapest point against the fastest.
func (b *bench) survey(ctx context.Context, workloads []workload, w io.Writer) error {
	fmt.Fprintln(w, "| workload | points | rank correlation | fastest | default / fastest | least cost / fastest |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|")
	for _, one := range workloads {
		t, err := newTask(one, b)
		if err != nil {
			return err
		}
		list, err := b.sample(ctx, t)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			b.writeSurvey(w, t, list)
		}
	}
	return nil
}

func (b *bench) writeSurvey(w io.Writer, t *task, list []sampled) {
	var costs, latencies []float64
	for _, s := range list {
		costs, latencies = append(costs, s.cost), append(latencies, s.latency)
	}
	fastest, cheapest := slices.Min(latencies), slices.Index(costs, slices.Min(costs))
	fmt.Fprintf(w, "| %s | %d | %.2f | %s | %.2f | %.2f |\n", t.title(), len(list), stat.Spearman(costs, latencies), show.Seconds(fastest),
		t.untuned/fastest, latencies[cheapest]/fastest)
	if !b.points {
		return
	}
	slices.SortStableFunc(list, func(x, y sampled) int { return cmp.Compare(x.latency, y.latency) })
	for _, s := range list {
		fmt.Fprintf(w, "<!-- %s, %s GFLOP/s, cost %.4g: %s -->\n", show.Seconds(s.latency), show.GFLOPS(t.flop, s.latency), s.cost, t.space.Format(s.point))
	}
}

// sampled is a measured point.
type sampled struct {
	point         space.Point
	cost, latency float64
}

// sample measures the requested points and skips those that fail.
func (b *bench) sample(ctx context.Context, t *task) ([]sampled, error) {
	points := map[string]space.Point{}
	batch := builder.Batch{Workload: t.Workload, Target: b.target}
	for _, p := range b.pointsOf(t) {
		s, err := t.space.Apply(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", t.title(), t.space.Format(p), err)
		}
		digest := schedule.Digest(s.Trace())
		if points[digest] == nil {
			points[digest] = p
			batch.Candidates = append(batch.Candidates, builder.Candidate{Digest: digest, Trace: s.Trace()})
		}
	}
	built, err := b.compiler.Build(ctx, t.dir, batch)
	if err != nil {
		return nil, err
	}
	var list []sampled
	first := batch.Candidates[0].Digest
	take := func(o runner.Outcome) {
		if o.Error != tilthv1.ErrorClass_ERROR_CLASS_NONE {
			return
		}
		s := sampled{points[o.Kernel], t.space.Cost(points[o.Kernel]), stat.Of(o.Samples).Min}
		if o.Kernel == first {
			t.untuned = s.latency
		}
		list = append(list, s)
	}
	if len(built.Objects) == 0 {
		return nil, nil
	}
	err = hostlock.Timed(ctx, func() error { return runner.Measure(ctx, b.plan(t, built, t.best), take) })
	return list, err
}

// pointsOf returns the default point, followed by the named points, the points that differ from it in one knob, or
// random ones.
func (b *bench) pointsOf(t *task) []space.Point {
	list := []space.Point{t.space.Default()}
	for _, text := range b.named {
		if p, ok := t.space.Parse(text); ok {
			list = append(list, p)
		}
	}
	if b.neighbours {
		list = append(list, t.space.Neighbours(list[0])...)
	}
	rng := rand.New(rand.NewPCG(1, 7))
	for range b.random {
		if p, ok := t.space.Random(rng); ok {
			list = append(list, p)
		}
	}
	return list
}
