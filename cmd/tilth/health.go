package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/wire"
)

func newHealth(a *app) *cobra.Command {
	var addr string
	var live bool
	var timeout time.Duration
	var proof certs.ClientConfig
	c := &cobra.Command{
		Use: "health", Short: "Check the health of a service",
		Long: `Check the health of a service that serves HTTP: a tracker, or an agent with --http.

A tracker is ready if it can write and its disk has space. An agent is ready if a
tracker answers it. The exit status is 0 if the service is ready, and 1, with the
reason, if it is not.`,
		Example: `  tilth health                                 # the tracker on this machine
  tilth health --http 127.0.0.1:9192           # an agent
  tilth health --http localhost:9191 --tls-ca certs/ca.crt
  tilth health --live                          # only that it answers`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&addr, "http", defaultHTTP, "`address` that it serves HTTP on: host:port or unix:PATH")
	c.Flags().BoolVar(&live, "live", false, "check only that it is alive, not that it is ready")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long to wait for the answer")
	atLeast(c, 1, "timeout")
	c.Flags().StringVar(&proof.CA, "tls-ca", "", "`file` of the authorities that may sign its certificate, or system; turns TLS on")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		var side *tls.Config
		if proof.CA != "" {
			var err error
			if side, err = proof.Config(); err != nil {
				return err
			}
		}
		path := wire.ReadyPath
		if live {
			path = wire.LivePath
		}
		if err := wire.AskHealth(ctx, addr, path, side); err != nil {
			return err
		}
		fmt.Fprintln(a.stdout, "ok")
		return nil
	})
}
