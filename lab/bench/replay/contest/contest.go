package contest

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/tilth-dev/tilth/lab/bench/replay"
)

// Options configures a comparison of searches.
type Options struct {
	Variants []Variant
	// Before lists sets, including samples, that searches may know in addition to the compared ones.
	Before []*replay.Set
	// Budget is the number of trials of a run. Seeds is the number of runs, with consecutive seeds from FirstSeed.
	Budget, Seeds int
	FirstSeed     uint64
	Batches       Batches
	// Noisy replays single samples instead of latencies.
	Noisy bool
	// Progress, if set, is called with the number of finished runs. Calls do not overlap.
	Progress func(done, all int)
}

// Run compares searches on sets. The report depends only on the sets and options.
func Run(ctx context.Context, sets []*replay.Set, o Options) (*Report, error) {
	devices := make([]*device, len(sets))
	if err := side(ctx, len(sets), func(k int) (err error) {
		devices[k], err = newDevice(sets[k])
		return err
	}); err != nil {
		return nil, err
	}
	before, guesses := newPast(devices, o.Before, o.Batches), make([]float64, len(sets))
	if err := side(ctx, len(sets), func(k int) (err error) {
		guesses[k], err = before.guessShare(k)
		return err
	}); err != nil {
		return nil, err
	}
	runs := make([]*run, len(sets)*len(o.Variants)*o.Seeds)
	var mu sync.Mutex
	done := 0
	err := side(ctx, len(runs), func(k int) error {
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

// side calls work for 0 to n-1 on one worker per processor and stops at the first error.
func side(ctx context.Context, n int, work func(int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	next := make(chan int)
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for k := range next {
				if err := work(k); err != nil {
					cancel(err)
				}
			}
		})
	}
	for k := 0; k < n && ctx.Err() == nil; k++ {
		select {
		case next <- k:
		case <-ctx.Done():
		}
	}
	close(next)
	wait.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}
