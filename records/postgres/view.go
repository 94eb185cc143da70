package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/records"
)

const (
	// viewTimeout bounds a look-up. A server that takes longer counts as unresponsive.
	viewTimeout = time.Minute
	// lookTimeout bounds a look-up of a single item, which may hold up the tracker's lock.
	lookTimeout = 5 * time.Second
)

// asker runs queries: a view, or a transaction of the writer.
type asker interface {
	// query calls row after each row was scanned into to.
	query(sql string, args, to []any, row func() error) error
}

// view is a read-only transaction with a consistent snapshot.
type view struct {
	ctx context.Context
	tx  pgx.Tx
}

func (v *view) query(sql string, args, to []any, row func() error) error {
	rows, err := v.tx.Query(v.ctx, sql, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, to, row)
	return err
}

// view runs a read transaction. It returns ErrAway if the server is unavailable.
func (db *DB) view(ctx context.Context, read func(v *view) error) error {
	if err := db.Unavailable(); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	err := pgx.BeginTxFunc(within, db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return read(&view{within, tx})
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSlow):
		return context.Cause(ctx)
	case isTransient(err):
		db.requestCheck()
		return fmt.Errorf("%s: %w: %v", db.name, records.ErrAway, err)
	}
	return err
}

// look runs a view for a single item.
func (db *DB) look(read func(v *view) error) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), lookTimeout, errSlow)
	defer cancel()
	return db.view(ctx, read)
}

// all runs a view for a whole listing.
func (db *DB) all(read func(v *view) error) error { return db.view(context.Background(), read) }

var errSlow = errors.New("it does not answer")

// one queries at most one row; there reports whether it exists.
func one(from asker, sql string, args, to []any) (there bool, err error) {
	err = from.query(sql, args, to, func() error {
		there = true
		return nil
	})
	return there, err
}
