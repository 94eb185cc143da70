package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/certs"
)

func newTrackerCerts(a *app) *cobra.Command {
	var dir string
	var clients map[string]string
	var order certs.Order
	c := &cobra.Command{
		Use: "certs", Short: "Make a farm's certificates: an authority's, the tracker's, and those of callers",
		Long: `Make a farm's certificates: an authority's, the tracker's, and those of callers.

The authority (ca.crt, ca.key) is created if it is missing, and signs the others.
Callers need ca.crt for --tls-ca. A certificate of --client NAME=ROLE identifies a
caller without a token; the roles are read-only, client, agent and admin. Keep ca.key
secret: it can create any identity. A running tracker and its callers reload renewed
files without a restart.`,
		Example: `  tilth tracker certs --dir certs --host tracker.example.com,10.0.0.5
  tilth tracker certs --dir certs --client alice=admin --client board-7=agent
  tilth tracker --listen :9190 --tls-cert certs/tracker.crt --tls-key certs/tracker.key \
    --tls-client-ca certs/ca.crt`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&dir, "dir", ".", "`folder` of the certificates")
	c.Flags().StringSliceVar(&order.Hosts, "host", nil, "make tracker.crt and tracker.key for these host `names` and addresses, and for localhost")
	c.Flags().StringToStringVar(&clients, "client", nil, "make NAME.crt and NAME.key for a caller `NAME=ROLE`")
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
