package main

import (
	"log/slog"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/access/caller"
)

// trackerFlags say which tracker is called, and how the caller proves who it is.
type trackerFlags struct {
	addr  string
	proof caller.Proof
}

// localFlags is the annotation of --tracker that names the flags of work here.
const localFlags = "tilth_local_flags"

// add adds --tracker and what belongs to it. Without a default the command works here unless a tracker is named.
func (f *trackerFlags) add(c *cobra.Command, byDefault string) {
	usage := "tracker `address`: host:port, unix:PATH or a list; overrides TILTH_TRACKER"
	if byDefault == "" {
		usage += " ('' = none)"
	}
	c.Flags().StringVar(&f.addr, "tracker", byDefault, usage)
	c.Flags().StringVar(&f.proof.TLS.CA, "tls-ca", "", "`file` of CA certificates for the tracker, or system; enables TLS")
	c.Flags().StringVar(&f.proof.TLS.Cert, "tls-cert", "", "`file` of the client certificate")
	c.Flags().StringVar(&f.proof.TLS.Key, "tls-key", "", "`file` of the client certificate's key")
	c.Flags().StringVar(&f.proof.TokenFile, "token-file", "", "`file` of the token that authenticates this client")
}

// excludes says which flags are of work here, and make no sense with a tracker.
func (f *trackerFlags) excludes(c *cobra.Command, local ...string) {
	for _, name := range local {
		c.MarkFlagsMutuallyExclusive("tracker", name)
	}
	_ = c.Flags().SetAnnotation("tracker", localFlags, local) // it fails for a flag that is not there, as the line before does
}

func (f *trackerFlags) options(log *slog.Logger) ([]grpc.DialOption, error) {
	return f.proof.DialOptions(f.addr, log)
}

func (f *trackerFlags) dial(log *slog.Logger) (*client.Client, error) {
	options, err := f.options(log)
	if err != nil {
		return nil, err
	}
	return client.Dial(f.addr, log, options...)
}
