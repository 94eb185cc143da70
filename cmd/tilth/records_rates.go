package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/internal/farm"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// rateCheck refuses records with latencies that their machines cannot reach, at rates that are known here or, with a
// tracker, there.
type rateCheck struct {
	known []farm.KnownRates
	// workload has the digest; nil if it is unknown. Only the first of several records has its text.
	digest   string
	workload *expr.Workload
}

// newRateCheck reads the known rates. It logs a tracker whose rates it cannot read.
func newRateCheck(ctx context.Context, tracker *trackerFlags, log *slog.Logger) *rateCheck {
	c := &rateCheck{}
	if cache, err := cacheDir(); err == nil {
		c.known = farm.RatesIn(cache)
	}
	if tracker.addr == "" {
		return c
	}
	there, err := tracker.dial(log)
	if err != nil {
		return c
	}
	defer there.Close()
	runners, err := there.Agents(ctx, tilthv1.AgentKind_AGENT_KIND_RUNNER)
	if err != nil {
		log.Warn("records are not compared with the rates of the tracker's devices", "error", err)
	}
	for _, runner := range runners {
		c.known = append(c.known, farm.RatesOf(runner.GetSpec().GetDeviceClasses())...)
	}
	return c
}

// check returns an error that wraps records.ErrInvalid and names the record, the claim and the limit.
func (c *rateCheck) check(r *tilthv1.Record) error {
	if text := r.GetWorkload(); len(text) > 0 || r.GetWorkloadDigest() != c.digest {
		c.digest, c.workload = r.GetWorkloadDigest(), nil
		if w, err := expr.Parse(string(text)); err == nil {
			c.workload = w
		}
	}
	if c.workload == nil {
		return nil
	}
	least, flop := 0.0, c.workload.Flop()
	for _, k := range c.known { // the fastest, if machines of one class differ
		if !strings.HasPrefix(r.GetTarget(), k.Machine+"-") {
			continue
		}
		if l := k.Least(c.workload, flop, k.CPU); least == 0 || l < least {
			least = l
		}
	}
	if err := records.ValidateRate(r.GetMeasurement(), flop, least); err != nil {
		return fmt.Errorf("the record of workload %.12s and candidate %.12s on %s: %w", r.GetWorkloadDigest(), r.GetMeasurement().GetCandidate().GetDigest(), r.GetTarget(), err)
	}
	return nil
}
