package postgres

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Readers returns the connection pool of reads.
func Readers(db *DB) *pgxpool.Pool { return db.pool }

// CommonLock is the key of the lock of data shared by all shards.
const CommonLock = int64(commonLock)

// Version returns the schema version.
func Version() int { return len(migrations) }

// Impatient returns options with a limit of each connection attempt.
func Impatient(opts Options, connectTimeout time.Duration) Options {
	opts.connectTimeout = connectTimeout
	return opts
}

// Newer returns options of the next schema version, whose migration is compatible with trackers of version usableBy.
func Newer(opts Options, usableBy int, sql string) Options {
	opts.migrations = append(slices.Clone(migrations), migration{usableBy: usableBy, sql: sql})
	return opts
}
