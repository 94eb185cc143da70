package soak

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// repeat runs packages until each has its runs in each setting or the time is up. It returns the number of failed
// runs.
func repeat(ctx context.Context, o options, binaries map[bool][]binary, l *ledger) (failures int, err error) {
	defer load(o.load)()
	p := newPlan(o, binaries, l.entries)
	deadline := time.Now().Add(o.limit)
	var mu sync.Mutex // guards p, l, failures and err
	next := func() (job, bool) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil || ctx.Err() != nil || o.limit > 0 && time.Now().After(deadline) {
			return job{}, false
		}
		return p.next()
	}
	keep := func(r result) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			err = errors.New("interrupted")
			return
		}
		if p.done(r); len(r.Failed) > 0 {
			failures++
		}
		fmt.Println(r)
		err = errors.Join(err, l.add(r))
	}
	var wait sync.WaitGroup
	for range max(o.parallel, 1) {
		wait.Go(func() {
			for j, ok := next(); ok; j, ok = next() {
				keep(j.run(ctx, o, j.setting, j.seed))
			}
		})
	}
	wait.Wait()
	return failures, err
}
