package postgres

import "github.com/jackc/pgx/v5/pgxpool"

// Readers are the connections that look-ups take.
func Readers(db *DB) *pgxpool.Pool { return db.pool }

// CommonLock is the key of the lock of what is common to all shards.
const CommonLock = int64(commonLock)
