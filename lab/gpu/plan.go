package gpu

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// pending returns the requested steps to run: first those that this version never tried on this card, then those that
// failed or lacked a peer.
func (b *suite) pending(ctx context.Context) []step {
	var fresh, again []step
	for _, s := range steps() {
		switch {
		case !b.wants(s.name):
		case !b.tried(s.name):
			fresh = append(fresh, s)
		case !b.done(ctx, s.name):
			again = append(again, s)
		}
	}
	return append(fresh, again...)
}

// own reports whether a result belongs to this version and card.
func (b *suite) own(r *result) bool {
	return r.Version == b.version && (b.card == "" || r.Card == b.card)
}

// tried reports whether this version tried a step on this card.
func (b *suite) tried(step string) bool { return b.ledger.newest(step, b.own) != nil }

// done reports whether this version finished a step on this card with everything available: a step without a
// peer is done for as long as the peer is missing.
func (b *suite) done(ctx context.Context, step string) bool {
	return b.whole(step) || b.ledger.last(step, b.own) != nil && b.versions(ctx) == ""
}

// whole reports whether this version ran a step on this card with a peer.
func (b *suite) whole(step string) bool {
	return b.ledger.last(step, func(r *result) bool { return b.own(r) && r.Undone == "" }) != nil
}

// expected estimates a step's duration: its last duration on this card plus a quarter, or a default.
func (b *suite) expected(s step) time.Duration {
	r := b.ledger.last(s.name, func(r *result) bool { return r.Card == b.card && r.Undone == "" })
	if r == nil {
		return s.takes
	}
	return time.Duration(1.25 * r.TookSeconds * float64(time.Second))
}

// showPlan lists the steps that this version has not run on any card, and their total duration.
func (b *suite) showPlan(w io.Writer) {
	var sum time.Duration
	table := humanize.NewTable(">expected", ">until then", "step")
	for _, s := range steps() {
		if b.wants(s.name) && !b.whole(s.name) {
			sum += b.expected(s)
			table.Row(b.expected(s).Round(time.Second).String(), sum.Round(time.Second).String(), s.name)
		}
	}
	if err := table.Write(w); err == nil {
		runs := (sum + b.limit - 1) / b.limit
		fmt.Fprintf(w, "%s in all, at least %d runs of %s\n", sum.Round(time.Second), runs, b.limit)
	}
}
