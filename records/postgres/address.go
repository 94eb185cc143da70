package postgres

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/records"
)

const (
	// defaultConnectTimeout bounds one connection attempt.
	defaultConnectTimeout = 5 * time.Second
	// maxReaders bounds the connections used by look-ups.
	maxReaders = 8
	// minReaders is the lower bound when a process divides maxReaders among its shards.
	minReaders = 2
)

// Check validates the address of a database, such as postgres://USER@HOST:PORT/DATABASE or, with several servers,
// postgres://USER@HOST:PORT,HOST:PORT/DATABASE. Errors contain no passwords.
func Check(address string) error {
	_, err := parse(address)
	return err
}

// checkURL refuses invalid addresses and addresses with passwords, since command lines and settings are visible to
// others. Errors do not quote the address.
func checkURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return errNoAddress
	}
	_, secret := u.User.Password()
	if q := u.Query(); secret || q.Has("password") || q.Has("sslpassword") {
		return errors.New("the address of the database has a password: put that into a file that PGPASSFILE names, or into PGPASSWORD")
	}
	return nil
}

var errNoAddress = errors.New("the address of the database is not postgres://USER@HOST:PORT/DATABASE, or has the ports of some of its hosts only")

// parse returns the configuration of each server in an address, in order. What the address omits comes from
// PostgreSQL's environment variables (PGHOST, PGPASSFILE, PGSSLMODE, ...) and the password file.
func parse(address string) (servers []*pgxpool.Config, err error) {
	if err := checkURL(address); err != nil {
		return nil, err
	}
	all, err := parseOne(address)
	if err != nil {
		return nil, err
	}
	c := all.ConnConfig
	hosts := []string{hostOf(c)}
	named := []*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port}}
	for _, f := range c.Fallbacks { // a server is listed twice if it may be tried without TLS
		if at := endpoint(f.Host, f.Port); !slices.Contains(hosts, at) {
			hosts, named = append(hosts, at), append(named, f)
		}
	}
	if len(named) == 1 {
		return []*pgxpool.Config{all}, nil
	}
	for _, n := range named { // each has its own line in the password file; the driver uses only the first's
		u, err := url.Parse(address)
		if err != nil {
			return nil, errNoAddress
		}
		q := u.Query()
		q.Set("host", n.Host)
		q.Set("port", strconv.Itoa(int(n.Port)))
		u.Host, u.RawQuery = "", q.Encode()
		one, err := parseOne(u.String())
		if err != nil {
			return nil, err
		}
		servers = append(servers, one)
	}
	return servers, nil
}

func parseOne(address string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(address)
	var file *fs.PathError
	switch {
	case errors.As(err, &file):
		return nil, fmt.Errorf("address of the database: %w", file)
	case err != nil: // it quotes the address
		return nil, errNoAddress
	}
	cfg.MaxConns = maxReaders
	c := cfg.ConnConfig
	c.ConnectTimeout = defaultConnectTimeout
	c.DialFunc = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}).DialContext
	c.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(records.MaxRowBytes) // regardless of the length that the server announces
		return f
	}
	for name, value := range map[string]string{
		"search_path": schemaName,
		// The server detects within seconds that the host of a process is gone, and frees its lock.
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
		"idle_in_transaction_session_timeout": "30s",
	} {
		c.RuntimeParams[name] = value
	}
	// Only a writable server will do, regardless of target_session_attrs.
	c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "tilth"
	}
	return cfg, nil
}

// nameOf returns a name of the database for messages, without password and parameters.
func nameOf(servers []*pgxpool.Config) string {
	hosts := humanize.Join(servers, " or ", func(s *pgxpool.Config) string { return hostOf(s.ConnConfig) })
	c := servers[0].ConnConfig
	return fmt.Sprintf("database %s of %s at %s", c.Database, c.User, hosts)
}

func hostOf(c *pgx.ConnConfig) string { return endpoint(c.Host, c.Port) }

func endpoint(host string, port uint16) string {
	if strings.HasPrefix(host, "/") { // a socket directory
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
