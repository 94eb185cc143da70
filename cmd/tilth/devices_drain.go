package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
