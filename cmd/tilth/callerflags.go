package main

import (
	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/access/certs"
)

// callerFlags authenticates a caller.
type callerFlags struct{ proof certs.Proof }

// add adds the flags, with a prefix to their names and a suffix to their descriptions.
func (f *callerFlags) add(c *cobra.Command, prefix, more string) {
	c.Flags().StringVar(&f.proof.TLS.CA, prefix+"tls-ca", "", "`file` of the authorities that may sign the certificate of a tracker or server, or system; turns TLS on for a tracker"+more)
	c.Flags().StringVar(&f.proof.TLS.Cert, prefix+"tls-cert", "", "`file` of the certificate that proves who calls"+more)
	c.Flags().StringVar(&f.proof.TLS.Key, prefix+"tls-key", "", "`file` of the certificate's key"+more)
	c.Flags().StringVar(&f.proof.TokenFile, prefix+"token-file", "", "`file` of the token that proves who calls"+more)
}

// or returns f with missing values taken from others. A certificate and its key are taken together.
func (f callerFlags) or(others callerFlags) callerFlags {
	if f.proof.TLS.CA == "" {
		f.proof.TLS.CA = others.proof.TLS.CA
	}
	if f.proof.TLS.Cert == "" && f.proof.TLS.Key == "" {
		f.proof.TLS.Cert, f.proof.TLS.Key = others.proof.TLS.Cert, others.proof.TLS.Key
	}
	if f.proof.TokenFile == "" {
		f.proof.TokenFile = others.proof.TokenFile
	}
	return f
}
