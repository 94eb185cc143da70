package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/access"
	"github.com/tilth-dev/tilth/access/certs"
)

func newTrackerCerts(a *app) *cobra.Command {
	var dir string
	var clients map[string]string
	var order certs.Order
	c := &cobra.Command{
		Use: "certs", Short: "Make a farm's certificates: an authority, the tracker's, and those of who calls",
		Long: `Make a farm's certificates: an authority, the tracker's, and those of who calls.

The authority (ca.crt, ca.key) is made when it is missing, and signs what else
is asked for. Those who call the tracker need ca.crt for --tls-ca. A certificate
of --client NAME=ROLE proves who calls without a token; the roles are read-only,
client, agent and admin. Keep ca.key where nobody else reads it: whoever has it
can be whoever they like. A running tracker, and whoever calls it, take files
that are made anew without a restart.`,
		Example: `  tilth tracker certs --dir certs --host tracker.example.com,10.0.0.5
  tilth tracker certs --dir certs --client alice=admin --client board-7=agent
  tilth tracker --listen :9190 --tls-cert certs/tracker.crt --tls-key certs/tracker.key --tls-client-ca certs/ca.crt`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&dir, "dir", ".", "`folder` of the certificates")
	c.Flags().StringSliceVar(&order.Hosts, "host", nil, "make tracker.crt and tracker.key for a tracker that is reached by these `names` and addresses, and as localhost")
	c.Flags().StringToStringVar(&clients, "client", nil, "make NAME.crt and NAME.key for who calls as `NAME=ROLE`")
	c.Flags().DurationVar(&order.Lifetime, "lifetime", certs.LeafLifetime, "how long they are valid; an authority is for 10 years")
	return a.leaf(c, func(context.Context, []string) error {
		if order.Lifetime <= 0 {
			return usagef("--lifetime %s: want a positive time", order.Lifetime)
		}
		order.Clients = map[string]access.Role{}
		for name, text := range clients {
			role, err := access.ParseRole(text)
			if err != nil {
				return usagef("--client %s: %w", name, err)
			}
			order.Clients[name] = role
		}
		made, err := order.Make(dir, time.Now())
		for _, file := range made {
			fmt.Fprintln(a.stdout, file)
		}
		return err
	})
}
