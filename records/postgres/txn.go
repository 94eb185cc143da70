package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// txn is a transaction of the writer. It batches statements until a result is needed or all are collected, since round
// trips dominate their cost.
type txn struct {
	ctx    context.Context
	tx     pgx.Tx
	shard  int
	shared bool // other shards' processes change records too
	groups *groups
	// there has those of the records to be added that exist already.
	there map[place]bool
	batch pgx.Batch
}

// place identifies a record.
type place struct {
	group int32
	key   records.Key
}

// bytes encodes a place as stored in rows of events.
func (p place) bytes() []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(p.group)), p.key[:]...)
}

// placeOf decodes a place; ok is false for malformed input.
func placeOf(name []byte) (p place, ok bool) {
	if len(name) != 4+len(p.key) {
		return p, false
	}
	return place{int32(binary.BigEndian.Uint32(name)), records.Key(name[4:])}, true
}

// apply makes the changes of a group of commits.
func apply(t *txn, group []commit) error {
	var ops []records.Op
	for _, c := range group {
		ops = append(ops, c.write.Ops()...)
	}
	if t.shared {
		if err := t.share(group, ops); err != nil {
			return err
		}
	}
	if err := t.findExisting(ops); err != nil {
		return err
	}
	for _, c := range group {
		if err := c.apply(t); err != nil {
			return err
		}
	}
	return t.flush()
}

// do queues a statement. It is executed before the next query at the latest.
func (t *txn) do(sql string, args ...any) { t.batch.Queue(sql, args...) }

// flush executes all queued statements.
func (t *txn) flush() error {
	if t.batch.Len() == 0 {
		return nil
	}
	b := t.batch
	t.batch = pgx.Batch{}
	return t.tx.SendBatch(t.ctx, &b).Close()
}

// query runs a query and calls row after each row was scanned into to.
func (t *txn) query(sql string, args, to []any, row func() error) error {
	if err := t.flush(); err != nil {
		return err
	}
	return (&view{t.ctx, t.tx}).query(sql, args, to, row)
}

// lookSQL looks up each record separately (OFFSET 0). A join would be planned once while the table is small, and then
// scan the whole table until statistics are gathered.
const lookSQL = `SELECT wanted.grp, wanted.key FROM unnest($1::int[], $2::bytea[]) AS wanted (grp, key),
	LATERAL (SELECT FROM records r WHERE r.grp = wanted.grp AND r.key = wanted.key OFFSET 0) AS found`

// messagesSQL reads each record separately, for the same reason.
const messagesSQL = `SELECT wanted.grp, wanted.key, found.message FROM unnest($1::int[], $2::bytea[]) AS wanted (grp, key),
	LATERAL (SELECT message FROM records r WHERE r.grp = wanted.grp AND r.key = wanted.key OFFSET 0) AS found`

// findExisting determines which of the records to be added exist, in one query.
func (t *txn) findExisting(ops []records.Op) error {
	var groups []int32
	var keys [][]byte
	add := func(of records.Group, entries ...records.Entry) error {
		g, err := t.groups.of(t, of)
		if err != nil {
			return err
		}
		for _, e := range entries {
			groups, keys = append(groups, g.number), append(keys, e.Key[:])
		}
		return nil
	}
	for _, op := range ops {
		var err error
		switch op := op.(type) {
		case records.AppendTrials:
			err = add(op.Group, op.Records...)
		case records.AddRecord:
			err = add(op.Group, op.Record)
		}
		if err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		return nil
	}
	var group int32
	var key []byte
	return t.query(lookSQL, []any{groups, keys}, []any{&group, &key}, func() error {
		k, err := keyOf(key)
		t.there[place{group, k}] = true
		return err
	})
}

// keyOf decodes a record's key as stored in the database.
func keyOf(key []byte) (k records.Key, err error) {
	if len(key) != len(k) {
		return k, fmt.Errorf("%w: the key of a record has %d bytes", records.ErrDamaged, len(key))
	}
	return records.Key(key), nil
}

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
		signal(db.doubted) // so that the writer checks the server
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

// Agents implements records.Store.
func (db *DB) Agents(visit func(*tilthv1.Agent)) error {
	return visitAll(db, "agents", "name", func(_ string, a *tilthv1.Agent) { visit(a) })
}

// Devices implements records.Store.
func (db *DB) Devices(visit func(name string, row *storev1.DeviceRow)) error {
	return visitAll(db, "devices", "name", visit)
}

// EndedJobs implements records.Jobs.
func (db *DB) EndedJobs(visit func(id string, row *storev1.EndedRow)) error {
	return visitAll(db, "ended", "id", visit)
}

// visitAll decodes and visits the shard's rows of a table of messages, in the order of their keys.
func visitAll[M any, P interface {
	*M
	proto.Message
}](db *DB, table, key string, visit func(key string, message P)) error {
	return db.all(func(v *view) error {
		var name, message []byte
		return v.query("SELECT "+key+", message FROM "+table+" WHERE shard = $1 ORDER BY "+key, []any{db.shard}, []any{&name, &message}, func() error {
			row := P(new(M))
			err := decode(message, row)
			if err == nil {
				visit(string(name), row)
			}
			return err
		})
	})
}
