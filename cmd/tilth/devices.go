package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/show"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func newDevices(a *app) *cobra.Command {
	return branch("devices", "List and show a farm's devices", newDevicesList(a), newDevicesShow(a))
}

// deviceRow is a device in a listing.
type deviceRow struct {
	Device    string            `json:"device"`
	State     string            `json:"state"`
	Host      string            `json:"host"`
	Version   string            `json:"version"`
	Labels    map[string]string `json:"labels"`
	Classes   []classRow        `json:"classes"`
	Completed uint64            `json:"completed"`
	Failed    uint64            `json:"failed"`
	Joined    string            `json:"joined_at"`
	Seen      string            `json:"seen_at"`
}

// classRow is what a device can be tuned for.
type classRow struct {
	Class  string         `json:"class"`
	Target *target.Target `json:"target,omitempty"`
}

func newDevicesList(a *app) *cobra.Command {
	var flags clientFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List devices",
		Example: "  tilth devices list\n  tilth devices list --json | jq '.[].classes[].class'",
		Args:    cobra.NoArgs,
	}
	flags.add(c)
	jsonFlag(c, &asJSON)
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		tracker, err := flags.dial(a)
		if err != nil {
			return err
		}
		defer tracker.Close()
		agents, err := tracker.Agents(ctx, tilthv1.AgentKind_AGENT_KIND_RUNNER)
		if err != nil {
			return err
		}
		var rows []deviceRow
		for _, agent := range agents {
			rows = append(rows, newDeviceRow(agent))
		}
		table := show.NewTable("DEVICE", "STATE", "HOST", "LABELS", ">COMPLETED", ">FAILED", "SEEN", "CLASSES")
		return list(a.stdout, asJSON, rows, table, func(r deviceRow) []string {
			return []string{
				r.Device, r.State, r.Host, r.labels(), strconv.FormatUint(r.Completed, 10), strconv.FormatUint(r.Failed, 10),
				r.Seen, r.classNames(),
			}
		})
	})
}

func newDevicesShow(a *app) *cobra.Command {
	var flags clientFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "show DEVICE", Short: "Show a device and what it can be tuned for",
		Example: "  tilth devices show rack3/board7",
		Args:    cobra.ExactArgs(1),
	}
	flags.add(c)
	jsonFlag(c, &asJSON)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		tracker, err := flags.dial(a)
		if err != nil {
			return err
		}
		defer tracker.Close()
		agent, err := tracker.Agent(ctx, args[0])
		if err != nil {
			return err
		}
		row := newDeviceRow(agent)
		if asJSON {
			return writeJSON(a.stdout, row)
		}
		return row.write(a.stdout)
	})
}

func newDeviceRow(agent *tilthv1.Agent) deviceRow {
	spec := agent.GetSpec()
	row := deviceRow{
		Device: spec.GetName(), State: show.AgentState(agent.GetState()), Host: spec.GetHost(), Version: spec.GetVersion(),
		Labels: spec.GetLabels(), Completed: agent.GetCompleted(), Failed: agent.GetFailed(),
		Joined: agent.GetJoinedAt().AsTime().Format(time.RFC3339), Seen: agent.GetSeenAt().AsTime().Format(time.RFC3339),
	}
	for _, class := range spec.GetDeviceClasses() {
		c := classRow{Class: class.GetName()}
		if t, err := target.Decode(class.GetDescriptor_()); err == nil {
			c.Target = t
		}
		row.Classes = append(row.Classes, c)
	}
	return row
}

func (r deviceRow) labels() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		parts = append(parts, name+"="+r.Labels[name])
	}
	if len(parts) == 0 {
		return show.Missing
	}
	return strings.Join(parts, ",")
}

func (r deviceRow) classNames() string {
	var names []string
	for _, c := range r.Classes {
		names = append(names, c.Class)
	}
	return strings.Join(names, ", ")
}

func (r deviceRow) write(w io.Writer) error {
	head := show.NewTable("device:", r.Device)
	head.Row("state:", r.State)
	head.Row("host:", r.Host)
	head.Row("version:", r.Version)
	head.Row("labels:", r.labels())
	head.Row("leases:", fmt.Sprintf("%d completed, %d failed", r.Completed, r.Failed))
	head.Row("joined:", r.Joined)
	head.Row("seen:", r.Seen)
	if err := head.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	table := show.NewTable("CLASS", "CPU", ">THREADS", ">VECTOR", ">L1", ">L2", ">L3")
	for _, c := range r.Classes {
		if t := c.Target; t != nil {
			table.Row(c.Class, t.CPU, strconv.Itoa(t.Threads), show.Bytes(int64(t.VectorBytes)), show.Bytes(t.L1DataBytes),
				show.Bytes(t.L2Bytes), show.Bytes(t.L3Bytes))
		} else {
			table.Row(c.Class)
		}
	}
	return table.Write(w)
}
