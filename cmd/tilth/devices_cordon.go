package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// changeDevice sets up a command that changes a device's state for a reason, and prints the new state.
func (a *app) changeDevice(c *cobra.Command,
	change func(tracker *client.Client, ctx context.Context, name, by, reason string) (*tilthv1.Device, error)) *cobra.Command {
	var reason string
	c.Args = cobra.ExactArgs(1)
	c.Flags().StringVar(&reason, "reason", "", "reason, shown to others")
	a.jsonFlag(c)
	return a.onTracker(c, func(ctx context.Context, tracker *client.Client, args []string) error {
		d, err := change(tracker, ctx, args[0], owner(), reason)
		if err != nil {
			return err
		}
		row := newDeviceRow(d)
		return a.printResult(row, "device %s: %s\n", row.Device, row.status())
	})
}

func newDevicesCordon(a *app) *cobra.Command {
	var duration time.Duration
	c := &cobra.Command{
		Use: "cordon DEVICE", Short: "Give a device no new work, for some time or until it is uncordoned",
		Long: `Give a device no new work, for some time or until it is uncordoned.

The device finishes its current work ('tilth devices drain' waits for that) and stays
joined. With --for, the cordon expires by itself, also across restarts of the tracker.`,
		Example: "  tilth devices cordon rack3/board7 --for 1h --reason 'a look at the fan'",
	}
	c.Flags().DurationVar(&duration, "for", 0, "how long, such as 90m (default until it is uncordoned)")
	atLeast(c, 1, "for")
	return a.changeDevice(c, func(tracker *client.Client, ctx context.Context, name, by, reason string) (*tilthv1.Device, error) {
		return tracker.Cordon(ctx, name, by, reason, duration)
	})
}

func newDevicesUncordon(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "uncordon DEVICE", Short: "Give a cordoned or drained device work again",
		Example: "  tilth devices uncordon rack3/board7",
	}
	return a.changeDevice(c, (*client.Client).Uncordon)
}

func newDevicesRecalibrate(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "recalibrate DEVICE", Short: "Accept a device's current speed: discard its reference and end its quarantine",
		Long: `Accept a device's current speed: discard its reference and end its quarantine.

Its next calm calibrations become the new reference.`,
		Example: "  tilth devices recalibrate rack3/board7 --reason 'clocked down for the summer'",
	}
	return a.changeDevice(c, (*client.Client).Recalibrate)
}

func newDevicesDrain(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "drain DEVICE", Short: "Cordon a device, and wait until it has finished its work",
		Long: `Cordon a device, and wait until it has finished its work.

An interrupt only ends the wait: the device stays cordoned until it is uncordoned.`,
		Example: "  tilth devices drain rack3/board7 --reason 'new kernel' && ssh board7 reboot",
	}
	return a.changeDevice(c, func(tracker *client.Client, ctx context.Context, name, by, reason string) (*tilthv1.Device, error) {
		d, err := tracker.Drain(ctx, name, by, reason, func(d *tilthv1.Device) {
			fmt.Fprintf(a.stderr, "device %s: waiting for %d leases\n", name, d.GetLeases())
		})
		if ctx.Err() != nil {
			return nil, fmt.Errorf("device %s stays cordoned, but has not finished its work: see 'tilth devices show'", name)
		}
		return d, err
	})
}
