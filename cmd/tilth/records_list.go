package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tuner/progress"
	"github.com/tilth-dev/tilth/tuner/recordsource"
)

// recordRow is a record in a listing.
type recordRow struct {
	Workload       string    `json:"workload"`
	Target         string    `json:"target"`
	Candidate      string    `json:"candidate"`
	LatencySeconds *float64  `json:"latency_s"`
	Error          string    `json:"error"`
	Message        string    `json:"message"`
	Device         string    `json:"device"`
	At             time.Time `json:"at"`
	Job            string    `json:"job"`
}

func newRecordsList(a *app) *cobra.Command {
	var flags recordsFlags
	c := &cobra.Command{
		Use: "list", Short: "List every record, failures included",
		Example: "  tilth records list --workload 4f0c…\n  tilth records list --json | jq '.[] | select(.error != \"\")'",
	}
	a.tableFlags(c)
	return a.onRecords(c, &flags, func(ctx context.Context, source recordsource.Source) error {
		var rows []recordRow
		err := source.List(ctx, flags.target, flags.workload, func(r *tilthv1.Record) error {
			rows = append(rows, newRecordRow(r))
			return nil
		})
		if err != nil {
			return err
		}
		table := humanize.NewTable("WORKLOAD", "CANDIDATE", ">LATENCY", "ERROR", "MEASURED", "DEVICE", "TARGET").Times("MEASURED").Errors("ERROR")
		return list(a, rows, table, func(r recordRow) []string {
			return []string{
				humanize.Digest(r.Workload), humanize.Digest(r.Candidate), seconds(r.LatencySeconds), r.Error, humanize.Instant(r.At), r.Device, r.Target,
			}
		})
	})
}

func newRecordRow(r *tilthv1.Record) recordRow {
	m := r.GetMeasurement()
	return recordRow{
		Workload: r.GetWorkloadDigest(), Target: r.GetTarget(), Candidate: m.GetCandidate().GetDigest(), LatencySeconds: progress.Positive(m.GetLatencySeconds()),
		Error: wire.ErrorClass(m.GetError()), Message: m.GetMessage(), Device: m.GetDevice(),
		At: m.GetAt().AsTime(), Job: r.GetJobId(),
	}
}

// bestRow is a best record in a listing.
type bestRow struct {
	Workload       string  `json:"workload"`
	Target         string  `json:"target"`
	LatencySeconds float64 `json:"latency_s"`
	// EnergyJoules is set if the target's objective is energy.
	EnergyJoules float64 `json:"energy_j,omitempty"`
	// Interval is the confidence interval of the median.
	Interval      *progress.Interval `json:"interval"`
	Flop          float64            `json:"flop"`
	RelativeError float64            `json:"relative_error"`
	Device        string             `json:"device"`
	At            time.Time          `json:"at"`
	Candidate     string             `json:"candidate"`
	Origin        string             `json:"origin"`
	// Kernel is the name and knobs of a hand-written kernel; empty for a schedule.
	Kernel string `json:"kernel,omitempty"`
	// Suspected is why the measurement is in doubt.
	Suspected string `json:"suspected,omitempty"`
	// Remeasured is why it was measured again.
	Remeasured string `json:"remeasured,omitempty"`
}

func newRecordsBest(a *app) *cobra.Command {
	var flags recordsFlags
	c := &cobra.Command{
		Use: "best", Short: "List the best verified record of each workload and target",
		Example: "  tilth records best\n  tilth records best --tracker 127.0.0.1:9190 --json",
	}
	a.tableFlags(c)
	return a.onRecords(c, &flags, func(ctx context.Context, source recordsource.Source) error {
		var only []string
		if _, served := source.(recordsource.Static); served && flags.workload != "" {
			only = []string{flags.workload} // the other records need not be fetched
		}
		best, err := source.Best(ctx, flags.target, schedule.Fast, only...)
		if err != nil {
			return err
		}
		var rows []bestRow
		for _, r := range best {
			if flags.workload == "" || flags.workload == r.GetWorkloadDigest() {
				rows = append(rows, newBestRow(r))
			}
		}
		table := humanize.NewTable("WORKLOAD", ">LATENCY", ">ENERGY", "INTERVAL", ">GFLOP/s", "MEASURED", "DEVICE", "TARGET", "SCHEDULE").
			Times("MEASURED").Rare("ENERGY")
		return list(a, rows, table, func(r bestRow) []string {
			return []string{
				humanize.Digest(r.Workload), humanize.Seconds(r.LatencySeconds), humanize.Joules(r.EnergyJoules), r.uncertainty(),
				humanize.GFLOPS(r.Flop, r.LatencySeconds), humanize.Instant(r.At), r.Device, r.Target, cmp.Or(r.Kernel, r.Origin),
			}
		})
	})
}

// uncertainty formats the interval.
func (r bestRow) uncertainty() string {
	if r.Interval == nil {
		return humanize.Missing
	}
	text := humanize.Interval(r.Interval.LowSeconds, r.Interval.HighSeconds, r.Interval.Level, stats.LatencyLevel)
	if r.Remeasured != "" {
		text += " remeasured"
	}
	return text
}

func newBestRow(r *tilthv1.Record) bestRow {
	m := r.GetMeasurement()
	row := bestRow{
		Workload: r.GetWorkloadDigest(), Target: r.GetTarget(), LatencySeconds: m.GetLatencySeconds(), EnergyJoules: m.GetEnergyJoules(),
		RelativeError: m.GetRelativeError(), Device: m.GetDevice(), At: m.GetAt().AsTime(),
		Candidate: m.GetCandidate().GetDigest(), Origin: string(m.GetCandidate().GetOrigin()),
		Kernel:    userkernel.Origin(m.GetCandidate().GetTrace()),
		Suspected: m.GetSuspected(), Remeasured: m.GetRemeasured(),
	}
	if i := m.GetInterval(); i.GetHighSeconds() > 0 {
		row.Interval = &progress.Interval{LowSeconds: i.GetLowSeconds(), HighSeconds: i.GetHighSeconds(), Level: i.GetLevel()}
	}
	if w, err := expr.Parse(string(r.GetWorkload())); err == nil {
		row.Flop = w.Flop()
	}
	return row
}

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
