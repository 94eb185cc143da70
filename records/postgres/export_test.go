package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Readers are the connections that look-ups take.
func Readers(db *DB) *pgxpool.Pool { return db.pool }

// CommonLock is the key of the lock of what is common to all shards.
const CommonLock = int64(commonLock)

// Version is that of the schema.
func Version() int { return len(migrations) }

// Newer are options of the version after this one, whose migration trackers of some version may go on after.
func Newer(opts Options, usableBy int, sql string) Options {
	opts.migrations = append(slices.Clone(migrations), migration{usableBy: usableBy, sql: sql})
	return opts
}
