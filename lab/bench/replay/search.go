package replay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// SearchOptions configures a comparison of searches.
type SearchOptions struct {
	Variants []Variant
	// Before lists sets, including samples, that searches may know in addition to the compared ones.
	Before []*Set
	// Budget is the number of trials of a run. Seeds is the number of runs, with consecutive seeds from FirstSeed.
	Budget, Seeds int
	FirstSeed     uint64
	Batches       Batches
	// Noisy replays single samples instead of latencies.
	Noisy bool
	// Progress, if set, is called with the number of finished runs. Calls do not overlap.
	Progress func(done, all int)
}

// CompareSearches compares searches on sets. The report depends only on the sets and options.
func CompareSearches(ctx context.Context, sets []*Set, o SearchOptions) (*Report, error) {
	devices := make([]*device, len(sets))
	if err := forEach(ctx, len(sets), func(k int) (err error) {
		devices[k], err = newDevice(sets[k])
		return err
	}); err != nil {
		return nil, err
	}
	before, guesses := newPast(devices, o.Before, o.Batches), make([]float64, len(sets))
	if err := forEach(ctx, len(sets), func(k int) (err error) {
		guesses[k], err = before.guessShare(k)
		return err
	}); err != nil {
		return nil, err
	}
	runs := make([]*run, len(sets)*len(o.Variants)*o.Seeds)
	var mu sync.Mutex
	done := 0
	err := forEach(ctx, len(runs), func(k int) error {
		at, v, seed := k/o.Seeds/len(o.Variants), o.Variants[k/o.Seeds%len(o.Variants)], uint64(k%o.Seeds)
		job, err := before.job(at, v.Known)
		if err != nil {
			return err
		}
		options := v.Options
		options.Seed = o.FirstSeed + seed
		if runs[k], err = devices[at].search(options, job, o.Budget, o.Batches, o.Noisy); err != nil {
			return err
		}
		if err := job.Err(); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if done++; o.Progress != nil {
			o.Progress(done, len(runs))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return report(devices, guesses, runs, o), nil
}

// forEach calls work for 0 to n-1, one call per processor at a time, and begins no call after the first error.
func forEach(ctx context.Context, n int, work func(int) error) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(runtime.GOMAXPROCS(0))
	for k := range n {
		all.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return work(k)
		})
	}
	return all.Wait()
}

// run is one search on one device.
type run struct {
	// digests lists the candidates in order of proposal.
	digests []string
	trials  []transfer.Trial
	// share holds, after each trial, the relative speed of the schedule that would then be chosen.
	share []float64
}

// Batches bounds the number of candidates per batch. A batch has as many candidates as were already tried, within
// these bounds.
type Batches struct{ Fewest, Most int }

func (b Batches) next(tried int) int { return min(max(b.Fewest, tried), b.Most) }

// search runs one search for at most budget trials, or fewer in a small space. noisy replays single samples;
// the chosen candidate is still judged by its latency.
func (d *device) search(o tuner.Options, job *transfer.Job, budget int, b Batches, noisy bool) (*run, error) {
	s, err := tuner.NewSearch(d.space, job, o)
	if err != nil {
		return nil, err
	}
	var rng *rand.Rand
	if noisy {
		rng = rand.New(rand.NewPCG(o.Seed, 5))
	}
	r, least, share := &run{}, 0.0, 0.0
	for len(r.digests) < budget {
		list := s.Propose(min(b.next(len(r.digests)), budget-len(r.digests)))
		if len(list) == 0 {
			break
		}
		for _, c := range list {
			t := d.measure(c, rng)
			if !t.Failed && (least == 0 || t.LatencySeconds < least) {
				least, share = t.LatencySeconds, d.best/d.points[c.Digest].LatencySeconds()
			}
			s.Observe(t)
			r.digests, r.share = append(r.digests, c.Digest), append(r.share, share)
			r.trials = append(r.trials, transfer.Trial{Origin: c.Origin, Digest: c.Digest, LatencySeconds: t.LatencySeconds})
		}
	}
	return r, nil
}

// trialsTo returns the number of trials to reach a share of the best. ok is false if the run missed it.
func (r *run) trialsTo(share float64) (int, bool) {
	for k, v := range r.share {
		if v >= share {
			return k + 1, true
		}
	}
	return len(r.share), false
}

// after returns the share reached after a number of trials.
func (r *run) after(trials int) float64 {
	if len(r.share) == 0 {
		return 0
	}
	return r.share[min(trials, len(r.share))-1]
}

// Known selects the knowledge available before a search.
type Known int

const (
	// Nothing is the state of a first job on an empty store.
	Nothing Known = iota
	// Others includes all sets of other workloads on the same target.
	Others
	// Same adds an earlier search of the same workload to Others.
	Same
)

// Variant is a search with its knowledge and disabled parts.
type Variant struct {
	Name    string
	Options tuner.Options
	Known   Known
}

// Variants returns the compared searches: the algorithms, and the learning one without each of its parts or
// with earlier knowledge.
func Variants() (list []Variant) {
	for _, name := range tuner.Names() {
		if name != tuner.Best {
			list = append(list, Variant{name, tuner.Options{Algorithm: name}, Nothing})
		}
	}
	return append(list,
		Variant{tuner.Best, tuner.Options{}, Others},
		Variant{tuner.Best + "-no-transfer", tuner.Options{NoTransfer: true}, Nothing},
		Variant{tuner.Best + "-no-model", tuner.Options{NoModel: true}, Others},
		Variant{tuner.Best + "-no-draft", tuner.Options{NoDraft: true}, Others},
		Variant{tuner.Best + "-no-seeds", tuner.Options{NoSeeds: true}, Others},
		Variant{tuner.Best + "-known", tuner.Options{}, Same},
	)
}

// VariantNames returns the names of all variants, separated by commas.
func VariantNames() string {
	var names []string
	for _, v := range Variants() {
		names = append(names, v.Name)
	}
	return strings.Join(names, ", ")
}

// Choose returns variants by name, in order, or all without names.
func Choose(names []string) ([]Variant, error) {
	all := Variants()
	if len(names) == 0 {
		return all, nil
	}
	var list []Variant
	for _, name := range names {
		k := slices.IndexFunc(all, func(v Variant) bool { return v.Name == name })
		if k < 0 {
			return nil, fmt.Errorf("unknown search %q: want one of %s", name, VariantNames())
		}
		list = append(list, all[k])
	}
	return list, nil
}
