package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/wire"
)

// siteFlags configures the web pages of an agent.
type siteFlags struct {
	addr     string
	insecure bool
}

func (f *siteFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.addr, "http", "", "`address` to serve metrics and health on: host:port or unix:PATH; empty = nowhere")
	c.Flags().BoolVar(&f.insecure, "http-insecure", false, "serve them to other machines too, without encryption or passwords; they are read-only")
}

// check prevents accidental exposure of an agent's pages.
func (f *siteFlags) check() error {
	if f.addr == "" {
		return nil
	}
	if err := wire.CheckAddress(f.addr); err != nil {
		return usagef("--http: %w", err)
	}
	if f.insecure || certs.IsLocal(f.addr) {
		return nil
	}
	return fmt.Errorf("--http %s can be reached by others: serve on 127.0.0.1, or use --http-insecure", f.addr)
}
