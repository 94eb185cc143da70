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
	// viewTimeout bounds a look-up. One that takes longer found no server that answers.
	viewTimeout = time.Minute
	// lookTimeout bounds one of a single thing, for which the tracker's lock may be held.
	lookTimeout = 5 * time.Second
)

// asker asks for rows: a view, or the transaction of the writer.
type asker interface {
	// query has row called after each row was scanned into the places to.
	query(sql string, args, to []any, row func() error) error
}

// view is a transaction that only reads, and sees one instant.
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

// view has something read. ErrAway when the server is away.
func (db *DB) view(ctx context.Context, read func(v *view) error) error {
	if err := db.Away(); err != nil {
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
	case passes(err):
		db.doubt()
		return fmt.Errorf("%s: %w: %v", db.name, records.ErrAway, err)
	}
	return err
}

// look is view for a single thing.
func (db *DB) look(read func(v *view) error) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), lookTimeout, errSlow)
	defer cancel()
	return db.view(ctx, read)
}

// all is view for all of a kind.
func (db *DB) all(read func(v *view) error) error { return db.view(context.Background(), read) }

var errSlow = errors.New("it does not answer")

// one asks for one row at most; there says whether there is one.
func one(from asker, sql string, args, to []any) (there bool, err error) {
	err = from.query(sql, args, to, func() error {
		there = true
		return nil
	})
	return there, err
}
