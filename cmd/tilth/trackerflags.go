package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
)

// trackerFlags selects the tracker and authenticates the caller.
type trackerFlags struct {
	addr string
	callerFlags
}

// localFlags is the annotation of --tracker that lists the flags of local work.
const localFlags = "tilth_local_flags"

// add adds --tracker and related flags. Without a default, the command works locally unless a tracker is named.
func (f *trackerFlags) add(c *cobra.Command, byDefault string) {
	usage := "tracker `address`: host:port, unix:PATH or a list; overrides TILTH_TRACKER"
	if byDefault == "" {
		usage += " ('' = none)"
	}
	c.Flags().StringVar(&f.addr, "tracker", byDefault, usage)
	tracker := c.Flags().Lookup("tracker")
	tracker.Value = checkedValue{tracker.Value, func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		return text, wire.CheckAddresses(text)
	}}
	f.callerFlags.add(c, "", "")
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

// callerFlags authenticates a caller.
type callerFlags struct{ proof certs.Proof }

// add adds the flags, with a prefix to their names and a suffix to their descriptions.
func (f *callerFlags) add(c *cobra.Command, prefix, more string) {
	c.Flags().StringVar(&f.proof.TLS.CA, prefix+"tls-ca", "", "`file` of the authorities that sign server certificates, or system for those of this machine; enables TLS for a tracker"+more)
	c.Flags().StringVar(&f.proof.TLS.Cert, prefix+"tls-cert", "", "client certificate `file`"+more)
	c.Flags().StringVar(&f.proof.TLS.Key, prefix+"tls-key", "", "`file` of the certificate's key"+more)
	c.Flags().StringVar(&f.proof.TokenFile, prefix+"token-file", "", "`file` with the caller's token"+more)
}

// or returns f with missing values taken from others. A certificate and its key are taken together.
func (f callerFlags) or(others callerFlags) callerFlags {
	f.proof.TLS.CA = cmp.Or(f.proof.TLS.CA, others.proof.TLS.CA)
	if f.proof.TLS.Cert == "" && f.proof.TLS.Key == "" {
		f.proof.TLS.Cert, f.proof.TLS.Key = others.proof.TLS.Cert, others.proof.TLS.Key
	}
	f.proof.TokenFile = cmp.Or(f.proof.TokenFile, others.proof.TokenFile)
	return f
}

// forever is the value of --wait without a duration.
const forever = "forever"

// waitFlag selects whether and how long to wait for missing agents.
type waitFlag struct {
	waits bool
	max   time.Duration // 0 means no limit
}

func (f *waitFlag) add(c *cobra.Command) {
	c.Flags().Var(f, "wait", "wait for missing agents")
	c.Flags().Lookup("wait").NoOptDefVal = forever
}

// String implements pflag.Value.
func (f *waitFlag) String() string {
	switch {
	case !f.waits:
		return ""
	case f.max == 0:
		return forever
	}
	return f.max.String()
}

// Set implements pflag.Value.
func (f *waitFlag) Set(text string) error {
	f.waits, f.max = true, 0
	if text == forever {
		return nil
	}
	var err error
	if f.max, err = humanize.ParseDuration(text); err != nil || f.max <= 0 {
		return fmt.Errorf("%w, above 0, or --wait alone", humanize.ErrDuration)
	}
	return nil
}

// Type implements pflag.Value.
func (f *waitFlag) Type() string { return "time" }

// patience returns the configuration, which prints reasons for waiting.
func (f *waitFlag) patience(a *app) client.Patience {
	return client.Patience{Waits: f.waits, Most: f.max, Report: func(message string) {
		fmt.Fprintln(a.stderr, "waiting: "+message)
	}}
}

// hint adds a hint at --wait to the error of a farm that lacks something.
func (f *waitFlag) hint(err error) error {
	if errors.As(err, new(*client.Lacking)) && !f.waits {
		return fmt.Errorf("%w; --wait waits for it", err)
	}
	return err
}
