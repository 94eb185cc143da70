package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/humanize"
)

func newDevicesList(a *app) *cobra.Command {
	var flags clientFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List devices",
		Example: "  tilth devices list\n  tilth devices list --json | jq '.[].classes[].class'",
		Args:    cobra.NoArgs,
	}
	tableFlags(a, c, &asJSON)
	return a.onTracker(c, &flags, func(ctx context.Context, tracker *client.Client, _ []string) error {
		devices, err := tracker.Devices(ctx)
		if err != nil {
			return err
		}
		outage, err := outage(ctx, tracker)
		if err != nil {
			return err
		}
		var rows []deviceRow
		for _, d := range devices {
			row := newDeviceRow(d)
			row.Outage = outage
			rows = append(rows, row)
		}
		table := humanize.NewTable("DEVICE", "STATE", ">DRIFT", "HOST", "LABELS", ">COMPLETED", ">FAILED", "SEEN", "CLASSES").Times("SEEN").States("STATE")
		err = list(a.stdout, asJSON, rows, table, func(r deviceRow) []string {
			return []string{
				r.Device, r.status(), r.drift(), r.Host, r.labels(), strconv.FormatUint(r.Completed, 10), strconv.FormatUint(r.Failed, 10),
				r.Seen, r.classNames(),
			}
		})
		if err == nil && outage != nil && !asJSON {
			_, err = fmt.Fprintf(a.stdout, "\n%s\n", outage.text())
		}
		return err
	})
}

// outageView describes an outage of the farm.
type outageView struct {
	Since  string `json:"since"`
	Until  string `json:"until"`
	Silent int    `json:"silent"`
	Agents int    `json:"agents"`
}

// outage returns the current outage, or nil.
func outage(ctx context.Context, tracker *client.Client) (*outageView, error) {
	o, err := tracker.Outage(ctx)
	if o == nil {
		return nil, err
	}
	return &outageView{
		Since: o.GetSince().AsTime().Format(time.RFC3339), Until: o.GetUntil().AsTime().Format(time.RFC3339),
		Silent: int(o.GetSilent()), Agents: int(o.GetAgents()),
	}, nil
}

// text describes the outage, or returns "".
func (o *outageView) text() string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d agents fell silent at %s; the tracker waits for them until %s", o.Silent, o.Agents, o.Since, o.Until)
}
