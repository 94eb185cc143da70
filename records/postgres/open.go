package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tilth-dev/tilth/records"
)

const (
	defaultLockTimeout = 2 * time.Second
	// lockPoll is how often a lock is asked for that another process holds.
	lockPoll = 100 * time.Millisecond
	// changeTimeout bounds each change that opening makes to all rows: migrations, or a division into shards.
	changeTimeout = 10 * time.Minute
	// closeTimeout bounds the wait for commits under way when a store is closed whose server may not answer.
	closeTimeout = 5 * time.Second
)

// Options bound a store.
type Options struct {
	// LockTimeout is how long to wait for another process to give the database up; 0 = 2 s.
	LockTimeout time.Duration
	// TransactionTimeout is how long a server may take over a transaction before it counts as away; 0 = a minute.
	TransactionTimeout time.Duration
	// Shards is how many shards the database has, and Shard which of them is opened; 0 shards = 1. A database has one
	// until it is opened with more, and keeps their number from then on: ErrShards when it has another one.
	Shards, Shard int
	// Reluctant says whether this process has its share of the shards, so that Await leaves this one to others that
	// wait, for some time; nil = it has not.
	Reluctant func(ctx context.Context) bool
	// Life names the life that begins; empty = a name is drawn at random. See records.IsLife.
	Life string
	// migrations are those of another version; nil = of this one.
	migrations []migration
}

// known are the migrations that a process knows.
func (o *Options) known() []migration {
	if o.migrations != nil {
		return o.migrations
	}
	return migrations
}

// DB is a database that this process has. Its methods may be called from many goroutines.
type DB struct {
	name    string // for people
	pool    *pgxpool.Pool
	life    string
	opts    Options
	shard   int
	epoch   int64 // 0 = none was begun yet
	timeout time.Duration
	// migrations are all that this process knows, and schema is what the database had when it was opened.
	migrations []migration
	schema     schema
	// reluctant is Options.Reluctant.
	reluctant func(ctx context.Context) bool
	// written is the server that is written, which look-ups ask, too: another may be behind without knowing.
	written atomic.Pointer[pgx.ConnConfig]

	// These belong to the writer.
	servers     []*pgx.ConnConfig
	at          int      // which of them to try first
	conn        *session // nil = there is none now
	timeline    int64    // of the last server, 0 = unknown; a lower one is of a server that was replaced
	transaction int64    // number of the last one
	groups      *groups

	mu     sync.Mutex
	queue  []commit
	failed error
	away   error
	onAway func(error)
	// onFailed hears once that every commit fails.
	onFailed func(error)
	observe  func(records.Transaction)
	closing  bool
	imports  int64 // number of the last one
	size     int64 // as it was when the server said it last
	wake     chan struct{}
	doubted  chan struct{}   // holds an element when a look-up did not find the server
	ending   chan struct{}   // closed when closing is set
	stopped  chan struct{}   // closed by the writer
	working  context.Context // of the writer's transactions; giveUp ends it
	giveUp   context.CancelFunc
	silent   chan struct{} // closed by the one that counts heartbeats
}

// Open opens the database at an address, as postgres://USER@HOST:PORT/DATABASE, and makes its tables when there are
// none. Of several servers, as postgres://USER@HOST,HOST/DATABASE, it is the one that takes writes, now and whenever
// it is to be found anew. One process at a time can: ErrLocked while another one has it. ErrVersion when its schema is
// a newer one.
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

// Await is Open for a process that stands by: while another one has the database it waits, until that gives it up, or
// has given no sign of life for some seconds. standsBy is called once when the wait begins; an error of it ends that,
// as does the end of ctx, with its cause. A server that is away ends it at the start only: ErrAway.
func Await(ctx context.Context, address string, opts Options, standsBy func() error) (*DB, error) {
	return open(ctx, address, opts, func(db *DB) (err error) {
		if err := db.settleFirst(ctx); err != nil {
			return ifAway(err)
		}
		if db.reluctant == nil || !db.reluctant(ctx) { // or else it waits, even for a lock that is free
			if db.conn, err = db.connect(ctx); !errors.Is(err, errHeld) {
				return ifAway(err)
			}
		}
		if err := standsBy(); err != nil {
			return err
		}
		return db.await(ctx)
	})
}

// open opens the database once lock has made the connection that holds the lock.
func open(ctx context.Context, address string, opts Options, lock func(*DB) error) (_ *DB, err error) {
	servers, err := parse(address)
	if err != nil {
		return nil, err
	}
	db := &DB{
		name: nameOf(servers), opts: opts, shard: opts.Shard, reluctant: opts.Reluctant, migrations: opts.known(),
		life: cmp.Or(opts.Life, records.NewLifeOf(opts.Shard)), groups: newGroups(),
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
		db.servers = append(db.servers, s.ConnConfig)
	}
	readers := servers[0].Copy()
	readers.MaxConns = max(leastReaders, mostReaders/int32(max(opts.Shards, 1)))
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
		err = ifAway(db.begin(ctx))
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
	return db.briefly(ctx, func(ctx context.Context) error {
		return db.conn.QueryRow(ctx, "SELECT coalesce(max(number), 0) FROM imports").Scan(&db.imports)
	})
}

// Life implements records.Store.
func (db *DB) Life() string { return db.life }

// SizeBytes implements records.Store. It is the whole database's, and what it was before while the server is away.
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

// Close implements records.Store. While the server is away it waits for nothing: what was handed in fails. One of
// which that is not known is waited for some seconds.
func (db *DB) Close() error {
	patience := closeTimeout
	if db.Away() != nil {
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
