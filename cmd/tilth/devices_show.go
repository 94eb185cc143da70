package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/humanize"
)

func newDevicesShow(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "show DEVICE", Short: "Show a device: its state and history, and what it can be tuned for",
		Example: "  tilth devices show rack3/board7",
		Args:    cobra.ExactArgs(1),
	}
	a.tableFlags(c)
	return a.onTracker(c, func(ctx context.Context, tracker *client.Client, args []string) error {
		d, err := tracker.Device(ctx, args[0])
		if err != nil {
			return err
		}
		row := newDeviceRow(d)
		if row.Outage, err = outage(ctx, tracker); err != nil {
			return err
		}
		return a.show(row, row.write)
	})
}

func (r deviceRow) write(w io.Writer) error {
	head := humanize.NewFacts("device:", r.Device)
	head.Row("state:", r.status())
	head.Row("host:", r.Host)
	head.Row("version:", r.Version)
	head.Row("labels:", r.labels())
	head.Row("leases:", fmt.Sprintf("%d in flight, %d completed, %d failed", r.Leases, r.Completed, r.Failed))
	head.Row("joined:", r.Joined)
	head.Row("seen:", r.Seen)
	if q := r.Quarantine; q != nil {
		head.Row("quarantine:", q.Reason+"; tried again at "+q.Until)
	}
	if r.Warning != nil {
		head.Row("warning:", fmt.Sprintf("since %s, %s; as the only device of its class it is given work all the same: "+
			"'tilth devices recalibrate %s' if it is to stay as it is", r.Warning.Since, r.Warning.Reason, r.Device))
	}
	if r.Cooldown != nil {
		head.Row("rest:", "until "+r.Cooldown.Until+", "+r.Cooldown.Reason)
	}
	if r.Outage != nil {
		head.Row("outage:", r.Outage.text())
	}
	if err := head.Write(w); err != nil {
		return err
	}
	return errors.Join(r.writeClasses(w), r.writeSandbox(w), r.writeCalibration(w), r.writeHistory(w))
}

func (r deviceRow) writeClasses(w io.Writer) error {
	fmt.Fprintln(w)
	// Device classes of another kind have other columns and start a new table.
	var table *humanize.Table
	var heading []string
	for _, c := range r.Classes {
		head, row := factsOf(c)
		if table == nil || c.Target != nil && !slices.Equal(head, heading) {
			if table != nil {
				if err := table.Write(w); err != nil {
					return err
				}
				fmt.Fprintln(w)
			}
			table, heading = humanize.NewTable(head...), head
		}
		table.Row(row...)
	}
	if table == nil {
		return nil
	}
	return table.Write(w)
}

// factsOf returns the table row of a class, with the headings.
func factsOf(c classRow) (head, row []string) {
	head, row = []string{"CLASS"}, []string{c.Class}
	if c.Target == nil {
		return head, row
	}
	for _, f := range c.Target.Facts() {
		name := strings.ToUpper(f.Name)
		switch v := f.Value.(type) {
		case target.Bytes:
			head, row = append(head, ">"+name), append(row, humanize.Bytes(int64(v)))
		case int:
			head, row = append(head, ">"+name), append(row, strconv.Itoa(v))
		default:
			head, row = append(head, name), append(row, fmt.Sprint(v))
		}
	}
	return head, row
}

func (r deviceRow) writeHistory(w io.Writer) error {
	if len(r.History) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	table := humanize.NewTable("CHANGED", "STATE", "BY", "REASON").Times("CHANGED").States("STATE")
	for _, c := range r.History {
		table.Row(c.At, c.State, cmp.Or(c.By, "the tracker"), cmp.Or(c.Reason, humanize.Missing))
	}
	return table.Write(w)
}

func (r deviceRow) writeSandbox(w io.Writer) error {
	fmt.Fprintln(w)
	if len(r.Sandbox) == 0 {
		_, err := fmt.Fprintln(w, "no sandbox")
		return err
	}
	table := humanize.NewTable("SANDBOX", "")
	for _, l := range r.Sandbox {
		switch {
		case l.How != "":
			table.Row(l.Layer, l.How)
		case l.Substitute != "":
			table.Row(l.Layer, l.Substitute+"; missing: "+l.Missing)
		default:
			table.Row(l.Layer, "MISSING: "+l.Missing)
		}
	}
	return table.Write(w)
}

func (r deviceRow) writeCalibration(w io.Writer) error {
	c := r.Calibration
	if c == nil {
		return nil
	}
	fmt.Fprintln(w)
	table := humanize.NewTable("CALIBRATION", ">COMPUTE", ">MEMORY", ">NOISE", "AT").Times("AT")
	row := func(name string, f figuresRow) {
		table.Row(name, humanize.Seconds(f.ComputeSeconds), humanize.Seconds(f.MemorySeconds), percent(f.Noise), f.At)
	}
	row("last", c.Last)
	if c.Reference == nil {
		table.Row("reference", "is being learnt")
	} else {
		row("reference", *c.Reference)
	}
	if err := table.Write(w); err != nil {
		return err
	}
	if c.Reference != nil {
		fmt.Fprintf(w, "drift: %s\n", percent(c.Drift))
	}
	return c.writeSurroundings(w)
}

func (r *calibrationRow) writeSurroundings(w io.Writer) error {
	if len(r.Temperatures)+len(r.Clocks)+len(r.Throttling)+len(r.MemoryErrors)+len(r.Power) == 0 {
		_, err := fmt.Fprintln(w, "the machine shows no temperatures and clocks")
		return err
	}
	table := humanize.NewTable("SURROUNDINGS", ">NOW", "OF", "GOVERNOR")
	for _, t := range r.Temperatures {
		table.Row(t.Sensor, fmt.Sprintf("%.1f °C", t.Celsius))
	}
	for _, k := range r.Clocks {
		maxText := humanize.Missing
		if k.Max > 0 {
			maxText = fmt.Sprintf("%.2f GHz", k.Max/1e9)
		}
		table.Row(k.Domain, fmt.Sprintf("%.2f GHz", k.Hertz/1e9), maxText, cmp.Or(k.Governor, humanize.Missing))
	}
	for _, t := range r.Throttling {
		table.Row(t.Source+" throttled", strconv.FormatUint(t.Events, 10))
	}
	for _, e := range r.MemoryErrors {
		table.Row(e.Memory+" memory errors corrected", strconv.FormatUint(e.Corrected, 10))
		table.Row(e.Memory+" memory errors not corrected", strconv.FormatUint(e.Uncorrected, 10))
	}
	for _, p := range r.Power {
		watts := humanize.Missing
		if p.Watts > 0 {
			watts = fmt.Sprintf("%.1f W", p.Watts)
		}
		table.Row("energy meter "+p.Meter, watts)
	}
	if err := table.Write(w); err != nil || len(r.Impairments) == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "the device %s\n", strings.Join(r.Impairments, " and "))
	return err
}

// drift formats the slowdown of the device against its reference.
func (r deviceRow) drift() string {
	if r.Calibration == nil || r.Calibration.Reference == nil {
		return humanize.Missing
	}
	return percent(r.Calibration.Drift)
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

func newDevicesList(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List devices",
		Example: "  tilth devices list\n  tilth devices list --json | jq '.[].classes[].class'",
	}
	a.tableFlags(c)
	return a.onTracker(c, func(ctx context.Context, tracker *client.Client, _ []string) error {
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
		err = list(a, rows, table, func(r deviceRow) []string {
			return []string{
				r.Device, r.status(), r.drift(), r.Host, r.labels(), strconv.FormatUint(r.Completed, 10), strconv.FormatUint(r.Failed, 10),
				r.Seen, humanize.Join(r.Classes, ", ", func(c classRow) string { return c.Class }),
			}
		})
		if err == nil && outage != nil && !a.asJSON {
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
	return &outageView{Since: instant(o.GetSince()), Until: instant(o.GetUntil()), Silent: int(o.GetSilent()), Agents: int(o.GetAgents())}, nil
}

// text describes the outage, or returns "".
func (o *outageView) text() string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d agents fell silent at %s; the tracker waits for them until %s", o.Silent, o.Agents, o.Since, o.Until)
}
