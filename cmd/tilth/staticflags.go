package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/signing"
	"github.com/tilth-dev/tilth/records/static"
	"github.com/tilth-dev/tilth/tuner/recordsource"
)

// readRecordsFlags lets --records accept a served export, and adds the related flags.
func readRecordsFlags(c *cobra.Command, allowHTTP *bool) {
	c.Flags().Lookup("records").Usage = "records `file`, or an export's URL or folder (default $XDG_DATA_HOME/tilth/tilth.db)"
	allowHTTPFlag(c, allowHTTP)
}

func allowHTTPFlag(c *cobra.Command, allowed *bool) {
	c.Flags().BoolVar(allowed, "allow-http", false, "accept unencrypted http to other machines, which an attacker on the way can change")
}

// openStatic opens an export of records. Downloads are cached.
func openStatic(ctx context.Context, where string, tls certs.ClientConfig, allowHTTP bool, key *signing.PublicKey) (recordsource.Static, error) {
	o := static.ServerOptions{AllowHTTP: allowHTTP}
	cache, err := cacheDir()
	if err != nil {
		return recordsource.Static{}, err
	}
	o.Cache = filepath.Join(cache, "records")
	if tls != (certs.ClientConfig{}) {
		if o.TLS, err = tls.Config(); err != nil {
			return recordsource.Static{}, err
		}
	}
	return recordsource.OpenStatic(ctx, where, key, o)
}
