package main

import (
	"log/slog"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/access/certs"
)

// trackerFlags selects the tracker and authenticates the caller.
type trackerFlags struct {
	addr  string
	proof certs.Proof
}

// localFlags is the annotation of --tracker that lists the flags of local work.
const localFlags = "tilth_local_flags"

// add adds --tracker and related flags. Without a default, the command works locally unless a tracker is
// named.
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

// excludes declares the flags of local work, which exclude --tracker.
func (f *trackerFlags) excludes(c *cobra.Command, local ...string) {
	for _, name := range local {
		c.MarkFlagsMutuallyExclusive("tracker", name)
	}
	_ = c.Flags().SetAnnotation("tracker", localFlags, local) // it only fails for an unknown flag, which the loop excludes
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
