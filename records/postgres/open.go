package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

const (
	defaultLockTimeout = 2 * time.Second
	// lockPoll is the interval of attempts to acquire a held lock.
	lockPoll = 100 * time.Millisecond
	// changeTimeout bounds each bulk change while opening: migrations, or the division into shards.
	changeTimeout = 10 * time.Minute
	// closeTimeout bounds the wait for pending commits on Close if the server does not answer.
	closeTimeout = 5 * time.Second
)

// Options configures a store.
type Options struct {
	// LockTimeout is how long to wait for another process to release the database; 0 means 2 s.
	LockTimeout time.Duration
	// TransactionTimeout is how long a transaction may take before the server counts as unavailable; 0 means one
	// minute.
	TransactionTimeout time.Duration
	// Shards is the number of shards of the database, and Shard the one to open; 0 shards means 1. A database has one
	// shard until it is opened with more. Afterwards the number is fixed; others yield ErrShards.
	Shards, Shard int
	// Reluctant reports whether this process has its share of the shards, so that Await leaves this one to other
	// waiting processes for a while; nil means it has not.
	Reluctant func(ctx context.Context) bool
	// Generation names the new generation; empty draws a random name. See records.IsGeneration.
	Generation string
	// migrations and connectTimeout override those of this version in tests.
	migrations     []migration
	connectTimeout time.Duration
}

// known returns the migrations that the process knows.
func (o *Options) known() []migration {
	if o.migrations != nil {
		return o.migrations
	}
	return migrations
}

// DB is a database, or a shard of one, that this process has. Its methods are safe for concurrent use.
type DB struct {
	name       string // for messages
	pool       *pgxpool.Pool
	generation string
	opts       Options
	shard      int
	epoch      int64 // 0 before the first
	timeout    time.Duration
	// migrations are those known to this process; schema is the database's state when it was opened.
	migrations []migration
	schema     schema
	// reluctant is Options.Reluctant.
	reluctant func(ctx context.Context) bool
	// written is the writable server. Look-ups use it too, since another server may lag without knowing.
	written atomic.Pointer[pgx.ConnConfig]

	// servers and the following fields are owned by the writer.
	servers     []*pgx.ConnConfig
	at          int      // server to try first
	conn        *session // nil without a connection
	timeline    int64    // of the last server, 0 if unknown; a lower one belongs to a replaced server
	transaction int64    // number of the last transaction
	groups      *groups

	mu     sync.Mutex
	queue  []commit
	failed error
	away   error
	onAway func(error)
	// onFailed is called once when all commits fail from then on.
	onFailed func(error)
	observe  func(records.Transaction)
	closing  bool
	imports  int64 // number of the last import
	size     int64 // as last reported by the server
	wake     chan struct{}
	doubted  chan struct{}   // has an element after a look-up failed to reach the server
	ending   chan struct{}   // closed when closing is set
	stopped  chan struct{}   // closed by the writer
	working  context.Context // context of the writer's transactions; giveUp cancels it
	giveUp   context.CancelFunc
	silent   chan struct{} // closed by the heartbeat goroutine
}

// Open opens the database at an address such as postgres://USER@HOST:PORT/DATABASE, creating its tables if necessary.
// With several servers, as in postgres://USER@HOST,HOST/DATABASE, it uses the writable one, now and on every
// reconnect. It is exclusive among processes. It returns ErrLocked while another process has the database, and
// ErrVersion if the schema is too new.
func Open(address string, opts Options) (*DB, error) {
	ctx := context.Background()
	return open(ctx, address, opts, func(db *DB) error {
		err := db.acquire(ctx, cmp.Or(opts.LockTimeout, defaultLockTimeout))
		if errors.Is(err, records.ErrLocked) {
			err = fmt.Errorf("%w: stop it, or ask it instead (--tracker)", err)
		}
		return err
	})
}

// Await is like Open for a standby process: while another process has the database, it waits until that one releases
// it or has sent no heartbeats for some seconds. It calls standsBy once when the wait begins; an error of standsBy or
// the end of ctx, with its cause, ends the wait. It returns ErrAway if the server is unavailable at the start, but not
// later.
func Await(ctx context.Context, address string, opts Options, standsBy func() error) (*DB, error) {
	return open(ctx, address, opts, func(db *DB) (err error) {
		if err := db.settleFirst(ctx); err != nil {
			return wrapUnavailable(err)
		}
		if db.reluctant == nil || !db.reluctant(ctx) { // otherwise wait, even for a free lock
			if db.conn, err = db.connect(ctx); !errors.Is(err, errHeld) {
				return wrapUnavailable(err)
			}
		}
		if err := standsBy(); err != nil {
			return err
		}
		return db.await(ctx)
	})
}

// open opens the database. lock must create the connection that holds the lock.
func open(ctx context.Context, address string, opts Options, lock func(*DB) error) (_ *DB, err error) {
	servers, err := parse(address)
	if err != nil {
		return nil, err
	}
	db := &DB{
		name: nameOf(servers), opts: opts, shard: opts.Shard, reluctant: opts.Reluctant, migrations: opts.known(),
		generation: cmp.Or(opts.Generation, records.NewGenerationOf(opts.Shard)), groups: newGroups(),
		timeout: cmp.Or(opts.TransactionTimeout, defaultTransactionTimeout),
		wake:    make(chan struct{}, 1), doubted: make(chan struct{}, 1), ending: make(chan struct{}), stopped: make(chan struct{}),
		silent: make(chan struct{}),
	}
	db.working, db.giveUp = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			db.giveUp()
		}
	}()
	for _, s := range servers {
		s.ConnConfig.ConnectTimeout = cmp.Or(opts.connectTimeout, s.ConnConfig.ConnectTimeout)
		db.servers = append(db.servers, s.ConnConfig)
	}
	readers := servers[0].Copy()
	readers.MaxConns = max(minReaders, maxReaders/int32(max(opts.Shards, 1)))
	readers.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if written := db.written.Load(); written != nil {
			*c = *written.Copy()
		}
		return nil
	}
	if db.pool, err = pgxpool.NewWithConfig(ctx, readers); err != nil {
		return nil, fmt.Errorf("%s: %w", db.name, err)
	}
	if err = db.awaitShard(ctx); err == nil {
		err = lock(db)
	}
	if err == nil {
		err = wrapUnavailable(db.begin(ctx))
	}
	if err != nil {
		db.disconnect()
		db.pool.Close()
		return nil, fmt.Errorf("%s: %w", db.name, err)
	}
	go db.write()
	go db.beat()
	if err := db.settleImports(); err != nil {
		return nil, fmt.Errorf("finish an import that was interrupted: %w", errors.Join(err, db.Close()))
	}
	return db, nil
}

func (db *DB) begin(ctx context.Context) error {
	if err := db.takeOver(ctx); err != nil {
		return err
	}
	return limited(ctx, db.timeout, func(ctx context.Context) error {
		return db.conn.QueryRow(ctx, "SELECT coalesce(max(number), 0) FROM imports").Scan(&db.imports)
	})
}

// Generation implements records.Store.
func (db *DB) Generation() string { return db.generation }

// SizeBytes implements records.Store. It returns the size of the whole database, or the last known size while the
// server is unavailable.
func (db *DB) SizeBytes() int64 {
	var size int64
	err := db.look(func(v *view) error {
		return v.tx.QueryRow(v.ctx, "SELECT pg_database_size(current_database())").Scan(&size)
	})
	db.mu.Lock()
	defer db.mu.Unlock()
	if err == nil {
		db.size = size
	}
	return db.size
}

// Observe implements records.Store.
func (db *DB) Observe(f func(records.Transaction)) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.observe = f
}

// Close implements records.Store. While the server is unavailable, it fails pending commits at once; otherwise it
// waits for them for some seconds.
func (db *DB) Close() error {
	patience := closeTimeout
	if db.Unavailable() != nil {
		patience = 0
	}
	db.mu.Lock()
	if !db.closing {
		db.closing = true
		close(db.ending)
	}
	db.mu.Unlock()
	defer time.AfterFunc(patience, db.giveUp).Stop()
	defer db.giveUp()
	<-db.stopped
	<-db.silent
	db.pool.Close()
	return nil
}
