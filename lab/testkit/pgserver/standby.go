package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby creates and starts a standby of a primary, reached by the folder of its socket. It rejects writes until it
// is promoted.
func Standby(primary string) (*Server, error) { return StandbyAt(Place{}, primary, primary) }

// StandbyAt is Standby at a place. host is the primary's host or socket folder as seen from there.
func StandbyAt(place Place, primary, host string) (*Server, error) {
	return made(place, func(s *Server) error {
		conninfo := fmt.Sprintf("host=%s user=%s application_name=standby", primary, User)
		out, err := s.command("pg_basebackup", "-d", conninfo, "-D", s.data(), "-R", "-X", "stream", "--checkpoint=fast", "--no-sync").CombinedOutput()
		if err != nil {
			return fmt.Errorf("pg_basebackup: %w: %s", err, strings.TrimSpace(string(out)))
		}
		if host != primary { // the last line takes precedence
			return s.addLines("postgresql.auto.conf", fmt.Sprintf("primary_conninfo = 'host=%s user=%s application_name=standby'", host, User))
		}
		return nil
	})
}

// WaitForStandby makes every commit wait for the standby's disk, and returns when the standby follows.
func (s *Server) WaitForStandby(ctx context.Context) error {
	if err := s.Set(ctx, "synchronous_standby_names", "standby"); err != nil {
		return err
	}
	return s.until(ctx, "EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
}

// Set changes a setting that needs no restart.
func (s *Server) Set(ctx context.Context, name, value string) error {
	return errors.Join(
		s.Do(ctx, fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", name, value)),
		s.Do(ctx, "SELECT pg_reload_conf()"))
}

// Promote promotes a standby and returns when it accepts writes.
func (s *Server) Promote(ctx context.Context) error {
	return s.Do(ctx, "SELECT pg_promote()")
}

// until polls a condition until it is true.
func (s *Server) until(ctx context.Context, condition string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.Address(s.folder, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for is := false; !is; {
		if err := conn.QueryRow(ctx, "SELECT "+condition).Scan(&is); err != nil {
			return fmt.Errorf("wait for %s: %w", condition, err)
		}
		if !is {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

// Freeze stops all processes of the server. It still accepts connections, but does not answer.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw continues a frozen server.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

// signal sends a signal to the main process and then to its children. After a SIGSTOP, it cannot fork new ones.
func (s *Server) signal(sig syscall.Signal) {
	if s.process == nil {
		return
	}
	_ = s.process.Signal(sig)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil { // already ended
			continue
		}
		// The format is PID (NAME) STATE PARENT ...
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && string(fields[1]) == strconv.Itoa(s.process.Pid) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				_ = syscall.Kill(pid, sig)
			}
		}
	}
}

// Serve restarts the server with TLS. It listens on comma-separated addresses of this machine at the default port,
// with a certificate and key in PEM.
func (s *Server) Serve(addresses string, certificate, key []byte) error {
	for name, text := range map[string][]byte{"server.crt": certificate, "server.key": key} {
		path := filepath.Join(s.data(), name)
		err := os.WriteFile(path, text, 0o600)
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, nobody, nobody)
		}
		if err != nil {
			return err
		}
	}
	err := s.addLines("pg_hba.conf", "hostssl all all 127.0.0.0/8 trust")
	if err := errors.Join(err, s.Do(context.Background(), "ALTER SYSTEM SET ssl = on")); err != nil {
		return err
	}
	s.addresses = addresses
	s.end(syscall.SIGINT)
	return s.Start()
}
