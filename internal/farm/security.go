package farm

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/access/audit"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/access/oidc"
	"github.com/tilth-dev/tilth/internal/access/tokens"
	"github.com/tilth-dev/tilth/tracker"
)

// Security names the files by which a tracker is closed. Its zero value is open, and writes nothing down.
type Security struct {
	// Cert and Key are the tracker's; empty = no TLS.
	Cert, Key string
	// ClientCA has the authorities of client certificates; empty = those prove nothing.
	ClientCA string
	// Tokens is the tokens file; empty = tokens prove nothing.
	Tokens string
	// OIDC says whose tokens of an issuer are taken; nil = nobody's.
	OIDC *oidc.Config
	// AuditFile is the audit log; AuditTo is where it goes otherwise. Neither = nothing is written down.
	AuditFile string
	AuditTo   io.Writer
	// AuditMaxBytes and AuditKeep are those of audit.OpenFile.
	AuditMaxBytes int64
	AuditKeep     int
	// CallsPerSecond is how often an identity may call; 0 = nobody counts.
	CallsPerSecond float64
	// Limits bound what peers may hold.
	Limits connlimit.Limits
}

// open reads the files. What it returns is to be closed after the tracker.
func (s Security) open(log *slog.Logger) (tracker.Security, io.Closer, error) {
	out := tracker.Security{Certificates: s.ClientCA != "", CallsPerSecond: s.CallsPerSecond, Limits: s.Limits}
	var err error
	if s.Cert != "" || s.Key != "" {
		// Without tokens, who has no certificate cannot be anybody.
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
		if out.Tokens, err = tokens.Open(s.Tokens, log, func(c tokens.Change) { noteTokens(out.Audit, s.Tokens, c) }); err != nil {
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

// closers are closed together.
type closers []io.Closer

// Close implements io.Closer.
func (all closers) Close() (err error) {
	for _, c := range all {
		err = errors.Join(err, c.Close())
	}
	return err
}

// noteTokens writes a change of the tokens file down. Who made it is the system's to know.
func noteTokens(log *audit.Log, file string, c tokens.Change) {
	words := func(list []tokens.Token) string {
		var out []string
		for _, t := range list {
			out = append(out, t.ID+" of "+t.Name+", "+string(t.Role))
		}
		return strings.Join(out, "; ")
	}
	log.Add(audit.Entry{
		Time: time.Now().UTC(), Verb: "tokens.change", From: file, Result: "OK",
		What: map[string]string{"come": words(c.Come), "gone": words(c.Gone)},
	})
}

func (s Security) openAudit(log *slog.Logger) (*audit.Log, error) {
	switch {
	case s.AuditFile != "":
		file, err := audit.OpenFile(s.AuditFile, s.AuditMaxBytes, s.AuditKeep)
		if err != nil {
			return nil, err
		}
		return audit.New(file, log), nil
	case s.AuditTo != nil:
		return audit.New(kept{s.AuditTo}, log), nil
	}
	return nil, nil
}

// kept is a writer that is not closed with the audit log.
type kept struct{ io.Writer }

// Close implements io.Closer.
func (kept) Close() error { return nil }
