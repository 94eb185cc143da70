package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Main runs the steps on a card, or prints their table.
func Main(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "table" {
		return runTable(args[1:], os.Stdout)
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	b := &suite{options: o}
	defer b.close()
	if b.ledger, err = openLedger(o.out); err != nil {
		return err
	}
	if o.plan {
		b.showPlan(os.Stdout)
		return nil
	}
	return b.run(ctx)
}

// keepingShare is the fraction 1/keepingShare of the time that is reserved for records and the cost model after all
// steps.
const keepingShare = 25

// run runs the steps that fit into the time.
func (b *suite) run(ctx context.Context) error {
	for _, dir := range []string{b.out, b.work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	end := time.Now().Add(b.limit)
	whole, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	deadline := end.Add(-b.limit / keepingShare)
	ctx, cancelSteps := context.WithDeadline(whole, deadline)
	defer cancelSteps()
	var err error
	if b.card, err = describeCard(ctx); err != nil {
		return err
	}
	if err := b.importRecords(ctx); err != nil {
		return err
	}
	var failed, left []string
	for _, s := range b.pending(ctx) {
		if ctx.Err() != nil || time.Until(deadline) < b.expected(s) {
			left = append(left, s.name)
			continue
		}
		r := b.do(ctx, s)
		if r.Error != "" {
			failed = append(failed, s.name)
		}
		fmt.Println(r)
		if err := b.ledger.add(r); err != nil {
			return err
		}
	}
	if err := b.learn(whole); err != nil {
		fmt.Printf("no cost model: %v\n", err)
	}
	if len(left) > 0 {
		fmt.Printf("left for another run: %s\n", strings.Join(left, ", "))
	}
	if len(failed) > 0 {
		return fmt.Errorf("these steps failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// do runs a step.
func (b *suite) do(ctx context.Context, s step) result {
	r := result{Step: s.name, Version: b.version, Card: b.card, At: time.Now().UTC().Truncate(time.Second), Values: map[string]float64{}, Notes: map[string]string{}}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 2*b.expected(s)+30*time.Second)
	defer cancel()
	if err := s.run(ctx, b, &r); err != nil {
		r.Error = cmp.Or(err.Error(), "failed")
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			r.Error = "took too long: " + r.Error
		}
	}
	r.TookSeconds = time.Since(begin).Seconds()
	return r
}
