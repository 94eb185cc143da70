package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/access/oidc"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/wire"
)

// Special values of --audit-log.
const (
	auditNowhere = "none"
	auditStderr  = "stderr"
)

// securityFlags configures access control and auditing of a tracker.
type securityFlags struct {
	cert, key, clientCA, tokens string
	oidc                        map[string]string
	oidcRoles                   []string
	issuer                      *oidc.Config // of both, after check; nil without one
	insecure                    bool
	auditLog                    string
	auditBytes                  int64
	auditKeep                   int
	limits                      connlimit.Limits
	requestMiB                  int
	callsPerSecond              float64
}

// minRequestMiB is the memory for the longest message, which must fit into the share of one connection.
const minRequestMiB = 256

func (f *securityFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.cert, "tls-cert", "", "`file` of the tracker's certificate; enables TLS")
	flags.StringVar(&f.key, "tls-key", "", "`file` of the certificate's key")
	flags.StringVar(&f.clientCA, "tls-client-ca", "", "`file` of CA certificates that sign client certificates")
	flags.StringVar(&f.tokens, "tokens", "", "`file` of the tokens that authenticate callers")
	flags.StringToStringVar(&f.oidc, "oidc", nil, "take tokens of an OpenID Connect issuer too, `issuer=URL,audience=NAME`; also owner-claim (sub), owner-prefix, role-claim (groups), ca (a file)")
	flags.StringSliceVar(&f.oidcRoles, "oidc-role", nil, "roles of that issuer's groups, e.g. `ml-team=client,farm-admins=admin`: the first counts that a caller is in; others are refused")
	flags.BoolVar(&f.insecure, "insecure", false, "serve other machines without encryption or authentication: anyone who reaches the tracker can run code on the farm")
	flags.StringVar(&f.auditLog, "audit-log", "", "audit log `file`, or stderr or none (default DATA/audit.jsonl)")
	flags.Int64Var(&f.auditBytes, "audit-max-bytes", access.DefaultAuditBytes, "size at which the audit log is rotated")
	flags.IntVar(&f.auditKeep, "audit-keep", access.DefaultAuditFiles, "number of full audit log files to keep")
	d := connlimit.Limits{}.WithDefaults()
	flags.IntVar(&f.limits.Connections, "max-connections", d.Connections, "connections of all peers together")
	flags.IntVar(&f.limits.PerHost, "max-connections-per-host", d.PerHost, "connections from one address")
	flags.Uint32Var(&f.limits.Streams, "max-streams", d.Streams, "calls in progress on a connection; others wait")
	flags.IntVar(&f.requestMiB, "max-request-mib", int(d.RequestBytes/mib), "memory limit, in MiB, for requests until they are answered, and as much for answers until they are read; a caller may use a quarter of it, a connection an eighth")
	flags.Float64Var(&f.callsPerSecond, "max-calls-per-second", 1000, "calls a second of an identity, on average; each session of its agents adds 50 (0 = no limit)")
	flags.DurationVar(&f.limits.Stall, "max-stall", d.Stall, "how long a peer may take to send or read the next message")
	atLeast(c, 1, "audit-max-bytes", "audit-keep", "max-connections", "max-connections-per-host", "max-streams", "max-stall")
}

// check validates the flags for a tracker listening on some addresses.
func (f *securityFlags) check(addrs ...string) error {
	switch {
	case f.requestMiB < minRequestMiB:
		return usagef("--max-request-mib %d: want at least %d, an eighth of which holds the longest message", f.requestMiB, minRequestMiB)
	case !(f.callsPerSecond >= 0) || math.IsInf(f.callsPerSecond, 1) || f.callsPerSecond > 0 && f.callsPerSecond < 1:
		return usagef("--max-calls-per-second %v: want 0 or at least 1", f.callsPerSecond)
	case f.clientCA != "" && f.cert == "":
		return usagef("--tls-client-ca %s: client certificates come with TLS: give --tls-cert and --tls-key too", f.clientCA)
	}
	if err := f.parseIssuer(); err != nil {
		return err
	}
	for _, addr := range addrs {
		if err := f.checkListen(addr); err != nil {
			return err
		}
	}
	return nil
}

// parseIssuer parses the OpenID Connect issuer, if there is one.
func (f *securityFlags) parseIssuer() error {
	switch {
	case len(f.oidc) == 0 && len(f.oidcRoles) > 0:
		return usagef("--oidc-role %s: the issuer is missing: give --oidc too", strings.Join(f.oidcRoles, ","))
	case len(f.oidc) == 0:
		return nil
	}
	cfg, err := oidc.Parse(f.oidc, f.oidcRoles)
	if err != nil {
		return usagef("--oidc, --oidc-role: %v", err)
	}
	f.issuer = &cfg
	return nil
}

// config returns the configuration, after check.
func (f *securityFlags) config(a *app, data string) farm.Security {
	f.limits.RequestBytes = int64(f.requestMiB) * mib
	s := farm.Security{
		Cert: f.cert, Key: f.key, ClientCA: f.clientCA, Tokens: f.tokens, OIDC: f.issuer, Limits: f.limits, CallsPerSecond: f.callsPerSecond,
		AuditMaxBytes: f.auditBytes, AuditKeep: f.auditKeep,
	}
	switch f.auditLog {
	case auditNowhere:
	case auditStderr:
		s.AuditTo = a.stderr
	case "":
		s.AuditFile = filepath.Join(data, "audit.jsonl")
	default:
		s.AuditFile = f.auditLog
	}
	return s
}

// callers describes who may call.
func (f *securityFlags) callers() string {
	switch {
	case f.takesTokens() && f.clientCA != "":
		return "with a token or a certificate"
	case f.takesTokens():
		return "with a token"
	case f.clientCA != "":
		return "with a certificate"
	}
	return "anybody who reaches it"
}

// takesTokens reports whether any kind of token is accepted.
func (f *securityFlags) takesTokens() bool { return f.tokens != "" || len(f.oidc) > 0 }

// checkListen prevents accidental exposure of a tracker.
func (f *securityFlags) checkListen(addr string) error {
	if addr == "" {
		return nil
	}
	if err := wire.CheckAddress(addr); err != nil {
		return &usageError{err}
	}
	if certs.IsLocal(addr) {
		return nil
	}
	encrypted, asks := f.cert != "", f.takesTokens() || f.clientCA != ""
	switch {
	case f.insecure || encrypted && asks:
		return nil
	case encrypted:
		return fmt.Errorf("address %s can be reached by others, who are not authenticated: give --tokens, --oidc or --tls-client-ca too, or use --insecure", addr)
	case asks:
		return fmt.Errorf("address %s can be reached by others, who could read callers' tokens: give --tls-cert and --tls-key too, or use --insecure", addr)
	}
	return fmt.Errorf("address %s can be reached by others, who could run code on the farm: listen on 127.0.0.1 and tunnel, secure it (see 'tilth tracker --help'), or use --insecure", addr)
}
