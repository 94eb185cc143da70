package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// decisionFlags holds the flags of commands that change a device's state.
type decisionFlags struct {
	clientFlags
	reason string
	asJSON bool
}

func (f *decisionFlags) add(c *cobra.Command) {
	f.clientFlags.add(c)
	c.Flags().StringVar(&f.reason, "reason", "", "reason, shown to others")
	jsonFlag(c, &f.asJSON)
}

// decide calls the tracker and prints the device's new state.
func (f *decisionFlags) decide(a *app, ask func(tracker *client.Client) (*tilthv1.Device, error)) error {
	tracker, err := f.dial(a)
	if err != nil {
		return err
	}
	defer tracker.Close()
	d, err := ask(tracker)
	if err != nil {
		return err
	}
	row := newDeviceRow(d)
	if f.asJSON {
		return writeJSON(a.stdout, row)
	}
	_, err = fmt.Fprintf(a.stdout, "device %s: %s\n", row.Device, row.status())
	return err
}

func newDevicesCordon(a *app) *cobra.Command {
	var flags decisionFlags
	var duration time.Duration
	c := &cobra.Command{
		Use: "cordon DEVICE", Short: "Give a device no new work, for some time or until it is uncordoned",
		Long: `Give a device no new work, for some time or until it is uncordoned.

The device finishes its current work ('tilth devices drain' waits for that) and stays
joined. With --for, the cordon expires by itself, also across restarts of the tracker.`,
		Example: "  tilth devices cordon rack3/board7 --for 1h --reason 'a look at the fan'",
		Args:    cobra.ExactArgs(1),
	}
	flags.add(c)
	c.Flags().DurationVar(&duration, "for", 0, "how long, such as 90m (default until it is uncordoned)")
	atLeast(c, 1, "for")
	return a.leaf(c, func(ctx context.Context, args []string) error {
		return flags.decide(a, func(tracker *client.Client) (*tilthv1.Device, error) {
			return tracker.Cordon(ctx, args[0], owner(), flags.reason, duration)
		})
	})
}

func newDevicesUncordon(a *app) *cobra.Command {
	var flags decisionFlags
	c := &cobra.Command{
		Use: "uncordon DEVICE", Short: "Give a cordoned or drained device work again",
		Example: "  tilth devices uncordon rack3/board7",
		Args:    cobra.ExactArgs(1),
	}
	flags.add(c)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		return flags.decide(a, func(tracker *client.Client) (*tilthv1.Device, error) {
			return tracker.Uncordon(ctx, args[0], owner(), flags.reason)
		})
	})
}

func newDevicesRecalibrate(a *app) *cobra.Command {
	var flags decisionFlags
	c := &cobra.Command{
		Use: "recalibrate DEVICE", Short: "Accept a device's current speed: discard its reference and end its quarantine",
		Long: `Accept a device's current speed: discard its reference and end its quarantine.

Its next calm calibrations become the new reference.`,
		Example: "  tilth devices recalibrate rack3/board7 --reason 'clocked down for the summer'",
		Args:    cobra.ExactArgs(1),
	}
	flags.add(c)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		return flags.decide(a, func(tracker *client.Client) (*tilthv1.Device, error) {
			return tracker.Recalibrate(ctx, args[0], owner(), flags.reason)
		})
	})
}

func newDevicesDrain(a *app) *cobra.Command {
	var flags decisionFlags
	c := &cobra.Command{
		Use: "drain DEVICE", Short: "Cordon a device, and wait until it has finished its work",
		Long: `Cordon a device, and wait until it has finished its work.

An interrupt only ends the wait: the device stays cordoned until it is uncordoned.`,
		Example: "  tilth devices drain rack3/board7 --reason 'new kernel' && ssh board7 reboot",
		Args:    cobra.ExactArgs(1),
	}
	flags.add(c)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		return flags.decide(a, func(tracker *client.Client) (*tilthv1.Device, error) {
			d, err := tracker.Drain(ctx, args[0], owner(), flags.reason, func(d *tilthv1.Device) {
				fmt.Fprintf(a.stderr, "device %s: waiting for %d leases\n", args[0], d.GetLeases())
			})
			if ctx.Err() != nil {
				return nil, fmt.Errorf("device %s stays cordoned, but has not finished its work: see 'tilth devices show'", args[0])
			}
			return d, err
		})
	})
}
