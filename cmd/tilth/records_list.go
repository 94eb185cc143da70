package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
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
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List every record, failures included",
		Example: "  tilth records list --workload 4f0c…\n  tilth records list --json | jq '.[] | select(.error != \"\")'",
		Args:    cobra.NoArgs,
	}
	tableFlags(a, c, &asJSON)
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
		return list(a.stdout, asJSON, rows, table, func(r recordRow) []string {
			latency := humanize.Missing
			if r.LatencySeconds != nil {
				latency = humanize.Seconds(*r.LatencySeconds)
			}
			return []string{humanize.Digest(r.Workload), humanize.Digest(r.Candidate), latency, r.Error, humanize.Instant(r.At), r.Device, r.Target}
		})
	})
}

func newRecordRow(r *tilthv1.Record) recordRow {
	m := r.GetMeasurement()
	row := recordRow{
		Workload: r.GetWorkloadDigest(), Target: r.GetTarget(), Candidate: m.GetCandidate().GetDigest(),
		Error: wire.ErrorClass(m.GetError()), Message: m.GetMessage(), Device: m.GetDevice(),
		At: m.GetAt().AsTime(), Job: r.GetJobId(),
	}
	if latency := m.GetLatencySeconds(); latency > 0 {
		row.LatencySeconds = &latency
	}
	return row
}
