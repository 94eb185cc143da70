package postgres

import "github.com/jackc/pgx/v5/pgxpool"

// Readers are the connections that look-ups take.
func Readers(db *DB) *pgxpool.Pool { return db.pool }
