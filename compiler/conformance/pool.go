package conformance

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// Pool runs cases in several processes.
type Pool struct {
	// Start returns the command of a process that calls Serve on its standard input and output.
	Start func(context.Context) *exec.Cmd
	// Jobs is the number of concurrent processes; 0 means 1.
	Jobs int
	// Limit is the time limit for a batch, and again for each part of it, and each of its cases; 0 means two minutes.
	Limit time.Duration
}

const (
	// batchCases is the number of cases in a package, which share the start-up time of a compiler. With 24, all
	// cases took half as long again.
	batchCases   = 120
	defaultLimit = 2 * time.Minute
	// fewCases is the number of cases up to which they run one by one after a joint failure.
	fewCases = 16
)

// Run calls report with the result of each case, in order, as soon as all earlier ones are known. It returns ctx's
// error.
func (p *Pool) Run(ctx context.Context, cases []Location, report func(Result)) error {
	batches := make(chan batch)
	o := &ordered{results: make([]*Result, len(cases)), report: report}
	var wait sync.WaitGroup
	for range max(p.Jobs, 1) {
		wait.Go(func() { p.work(ctx, batches, o) })
	}
	size := p.batchSize(len(cases))
	for at := 0; at < len(cases) && ctx.Err() == nil; at += size {
		batches <- batch{at, cases[at:min(at+size, len(cases))]}
	}
	close(batches)
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// batchSize returns a size that keeps all processes busy.
func (p *Pool) batchSize(cases int) int {
	jobs := max(p.Jobs, 1)
	return max(1, min(batchCases, (cases+jobs-1)/jobs))
}

// batch is a set of cases that are compiled together; at is the number of the first.
type batch struct {
	at    int
	cases []Location
}

func (p *Pool) work(ctx context.Context, batches <-chan batch, o *ordered) {
	limit := cmp.Or(p.Limit, defaultLimit)
	child := &process{start: p.Start, limit: limit}
	defer child.stop()
	for b := range batches {
		for k, r := range runBatch(ctx, child, b.cases) {
			o.set(b.at+k, r)
		}
	}
}

// runBatch runs the cases together. On failure it runs them in parts, 11 of 120, and the cases of failed parts one
// by one.
func runBatch(ctx context.Context, child *process, cases []Location) []Result {
	results, err := child.ask(ctx, cases)
	if err == nil {
		return results
	}
	if ctx.Err() != nil {
		return nil
	}
	if len(cases) == 1 {
		return []Result{failed(cases[0].Name, err)}
	}
	apart := []Result{}
	for part := range slices.Chunk(cases, partCases(len(cases))) {
		apart = append(apart, runBatch(ctx, child, part)...)
	}
	// A failure that needs several cases must be reported; a timeout on a busy machine must not.
	if !anyFailed(apart) && !errors.Is(err, errHung) {
		apart[0] = failed(cases[0].Name, errors.New("together with the cases after it: "+err.Error()))
	}
	return apart
}

// partCases returns the size of the parts for a failed batch.
func partCases(cases int) int {
	if cases <= fewCases {
		return 1
	}
	return int(math.Ceil(math.Sqrt(float64(cases))))
}

func anyFailed(results []Result) bool {
	return slices.ContainsFunc(results, func(r Result) bool { return r.Status == Fail }) || len(results) == 0
}

// ordered passes on results in case order.
type ordered struct {
	mu      sync.Mutex
	results []*Result
	next    int
	report  func(Result)
}

func (o *ordered) set(k int, r Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.results[k] = &r
	for o.next < len(o.results) && o.results[o.next] != nil {
		o.report(*o.results[o.next])
		o.next++
	}
}
