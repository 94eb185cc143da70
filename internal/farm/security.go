package farm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/access/oidc"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/sandbox"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// Security configures access control of a tracker. Its zero value allows everyone and writes no audit log.
type Security struct {
	// Cert and Key are the tracker's certificate; empty disables TLS.
	Cert, Key string
	// ClientCA is the CA file for client certificates; empty disables them.
	ClientCA string
	// Tokens is the tokens file; empty disables tokens.
	Tokens string
	// OIDC configures the OpenID Connect issuer whose tokens are accepted, if any.
	OIDC *oidc.Config
	// AuditFile is the path of the audit log; AuditTo is an alternative writer. Without both there is no audit log.
	AuditFile string
	AuditTo   io.Writer
	// AuditMaxBytes and AuditKeep are passed to access.OpenAuditFile.
	AuditMaxBytes int64
	AuditKeep     int
	// CallsPerSecond limits the calls of an identity; 0 disables the limit.
	CallsPerSecond float64
	// Limits bounds the resources of peers.
	Limits connlimit.Limits
}

// open reads the files. The returned closer must be closed after the tracker.
func (s Security) open(log *slog.Logger) (tracker.Security, io.Closer, error) {
	out := tracker.Security{Certificates: s.ClientCA != "", CallsPerSecond: s.CallsPerSecond, Limits: s.Limits}
	var err error
	if s.Cert != "" || s.Key != "" {
		// Without tokens, only a certificate can authenticate a caller.
		only := s.ClientCA != "" && s.Tokens == "" && s.OIDC == nil
		config := certs.ServerConfig{Cert: s.Cert, Key: s.Key, ClientCA: s.ClientCA, RequireClient: only}
		if out.TLS, err = certs.NewServer(config, log); err != nil {
			return tracker.Security{}, nil, err
		}
	}
	if out.Audit, err = s.openAudit(log); err != nil {
		return tracker.Security{}, nil, err
	}
	opened := closers{out.Audit}
	if s.Tokens != "" {
		if out.Tokens, err = access.OpenTokens(s.Tokens, log, func(c access.TokenChange) { noteTokens(out.Audit, s.Tokens, c) }); err != nil {
			return tracker.Security{}, nil, errors.Join(err, opened.Close())
		}
	}
	if s.OIDC != nil {
		if out.OIDC, err = oidc.Open(*s.OIDC, oidc.Options{Logger: log}); err != nil {
			return tracker.Security{}, nil, errors.Join(err, opened.Close())
		}
		opened = append(opened, out.OIDC)
	}
	return out, opened, nil
}

// closers closes several closers.
type closers []io.Closer

// Close closes all of them and returns their errors.
func (all closers) Close() (err error) {
	for _, c := range all {
		err = errors.Join(err, c.Close())
	}
	return err
}

// noteTokens writes a change of the tokens file to the audit log. The operating system knows its author.
func noteTokens(log *access.AuditLog, file string, c access.TokenChange) {
	words := func(list []access.Token) string {
		return humanize.Join(list, "; ", func(t access.Token) string { return t.ID + " of " + t.Name + ", " + string(t.Role) })
	}
	log.Add(access.AuditEntry{
		Time: time.Now().UTC(), Verb: "tokens.change", From: file, Result: "OK",
		What: map[string]string{"come": words(c.Come), "gone": words(c.Gone)},
	})
}

func (s Security) openAudit(log *slog.Logger) (*access.AuditLog, error) {
	switch {
	case s.AuditFile != "":
		file, err := access.OpenAuditFile(s.AuditFile, s.AuditMaxBytes, s.AuditKeep)
		if err != nil {
			return nil, err
		}
		return access.NewAuditLog(file, log), nil
	case s.AuditTo != nil:
		return access.NewAuditLog(nopCloser{s.AuditTo}, log), nil
	}
	return nil, nil
}

// nopCloser is a writer that stays open when the audit log is closed.
type nopCloser struct{ io.Writer }

// Close does nothing.
func (nopCloser) Close() error { return nil }

// openSandbox opens a sandbox and reports missing isolation mechanisms to the farm and to the log.
func openSandbox(mode sandbox.Mode, b *base) (*sandbox.Sandbox, error) {
	mode = cmp.Or(mode, sandbox.BestEffort)
	box, err := sandbox.Open(mode, filepath.Join(b.scratch, "sandbox"))
	if err != nil {
		return nil, err
	}
	if mode == sandbox.Off {
		b.cfg.Logger.Warn("no sandbox: the farm's programs run with all rights of this user")
	}
	for _, missing := range box.Missing() {
		b.cfg.Logger.Warn("a sandbox layer is unavailable", "layer", missing)
	}
	for _, s := range box.States() {
		how := s.How
		if s.Except != "" {
			b.cfg.Logger.Warn("a sandbox layer is unavailable for some programs", "layer", s.Layer, "except", s.Except)
			how += ", except around " + s.Except
		}
		b.spec.Sandbox = append(b.spec.Sandbox, &tilthv1.SandboxLayer{Name: string(s.Layer), How: how, Missing: s.Missing, Substitute: s.Substitute})
	}
	return box, nil
}

// minDescriptors is the smallest limit on open files with which a tracker starts.
const minDescriptors = 128

// FitDescriptors returns the limits with at most the connections that the process's limit on open files allows. It
// logs a warning if they are fewer than configured.
func FitDescriptors(l connlimit.Limits, log *slog.Logger) (connlimit.Limits, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("the limit on open files is unknown", "error", err)
		return l, nil
	}
	fitted, err := connectionsWithin(l, limit.Cur) // Go programs raise their soft limit to the hard one
	if configured := l.WithDefaults().Connections; err == nil && fitted.Connections < configured {
		log.Warn("the limit on open files allows fewer connections than --max-connections", "open_files", limit.Cur,
			"max_connections", configured, "connections", fitted.Connections, "hint", tracker.FilesHint)
	}
	return fitted, err
}

// connectionsWithin reduces the connections so that a process with a limit on open files keeps a quarter of them for
// files, and serves pages while calls have all of theirs.
func connectionsWithin(l connlimit.Limits, files uint64) (connlimit.Limits, error) {
	if files < minDescriptors {
		return l, fmt.Errorf("the limit on open files is %d, and a tracker needs at least %d: %s", files, minDescriptors, tracker.FilesHint)
	}
	l = l.WithDefaults()
	quarter := files / 4
	l.WebConnections = int(min(uint64(l.WebConnections), quarter))
	l.Connections = int(min(uint64(l.Connections), files-quarter-uint64(l.WebConnections)))
	return l, nil
}
