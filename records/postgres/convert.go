package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/records"
)

// Stopped is a database held for a conversion; see records.Target.
type Stopped struct {
	db *DB
	// epochs is the sum of the epochs of all shards.
	epochs int64
}

// OpenSource opens the database at an address for reading all rows of all shards. It locks out trackers until Close
// and starts a new epoch, so that a tracker that was cut off writes nothing; it changes nothing else. Agents and
// devices have a row per shard, of which the first shard's counts. It returns ErrLocked if a tracker has the database,
// ErrUnfinished for an unfinished copy, and ErrVersion for a schema of another version.
func OpenSource(ctx context.Context, address string, opts Options) (*Stopped, error) {
	return openStopped(ctx, address, opts, func(db *DB) error {
		s, err := schemaOf(ctx, db.conn.Conn)
		if err == nil {
			err = db.checkSame(s)
		}
		if err != nil {
			return err
		}
		return checkConverted(ctx, db.conn.Conn)
	})
}

// OpenTarget opens the database at an address for copying rows into it, creating its tables if necessary. The result
// has one shard; trackers may divide it later. It locks out other processes until Close. Errors are as for OpenSource.
func OpenTarget(ctx context.Context, address string, opts Options) (*Stopped, error) {
	return openStopped(ctx, address, opts, func(db *DB) error {
		err := db.migrate(ctx)
		if err == nil {
			err = db.checkSame(db.schema)
		}
		if err != nil {
			return err
		}
		return checkOneShard(ctx, db.conn.Conn)
	})
}

func openStopped(ctx context.Context, address string, opts Options, prepare func(*DB) error) (*Stopped, error) {
	servers, err := parse(address)
	if err != nil {
		return nil, err
	}
	db := &DB{name: nameOf(servers), migrations: opts.known(), timeout: cmp.Or(opts.TransactionTimeout, defaultTransactionTimeout)}
	for _, s := range servers {
		db.servers = append(db.servers, s.ConnConfig)
	}
	s := &Stopped{db: db}
	if err = db.acquire(ctx, cmp.Or(opts.LockTimeout, defaultLockTimeout)); err == nil {
		err = clearHeartbeat(ctx, db.conn.Conn, 0)
	}
	if err == nil {
		err = prepare(db)
	}
	if err == nil {
		err = db.beginEpoch(ctx, "")
	}
	if err == nil {
		err = s.takeShards(ctx, cmp.Or(opts.LockTimeout, defaultLockTimeout))
	}
	if errors.Is(err, records.ErrLocked) {
		err = fmt.Errorf("%w: stop the tracker first", err)
	}
	if err != nil {
		db.disconnect()
		return nil, fmt.Errorf("%s: %w", db.name, err)
	}
	return s, nil
}

// takeShards locks all other shards and starts a new epoch of each. It returns ErrLocked if a tracker has one.
func (s *Stopped) takeShards(ctx context.Context, patience time.Duration) error {
	conn := s.db.conn
	var shards int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM tracker").Scan(&shards); err != nil {
		return err
	}
	begin := time.Now()
	for shard := 1; shard < shards; {
		held, err := tryLock(ctx, conn, shard)
		switch {
		case err != nil:
			return err
		case held:
			if err := clearHeartbeat(ctx, conn.Conn, shard); err != nil {
				return err
			}
			shard++
		case time.Since(begin) >= patience:
			return records.ErrLocked
		default:
			if err := pause(ctx, nil, lockPoll); err != nil {
				return err
			}
		}
	}
	if _, err := conn.Exec(ctx, "UPDATE tracker SET epoch = epoch + 1 WHERE shard > 0"); err != nil {
		return err
	}
	return conn.QueryRow(ctx, "SELECT sum(epoch)::bigint FROM tracker").Scan(&s.epochs)
}

// checkSame refuses any schema other than this version's, even a newer one that trackers of this version could use: a
// conversion would omit what it does not know.
func (db *DB) checkSame(s schema) error {
	own := len(db.migrations)
	switch {
	case s.version == 0:
		return errors.New("it has no records of Tilth: name the database of a tracker")
	case s.version < own:
		return fmt.Errorf("%w, an earlier one: start a tracker of this version on it, stop that, and convert again", records.ErrVersion)
	case s.version > own:
		return fmt.Errorf("%w, a later one: schema %d, this one copies schema %d: convert with the version of its trackers", records.ErrVersion, s.version, own)
	}
	return nil
}

// conversion returns the database's mark, or nil.
func conversion(ctx context.Context, conn *pgx.Conn) (*storev1.Conversion, error) {
	var message []byte
	if err := conn.QueryRow(ctx, "SELECT conversion FROM tracker WHERE shard = 0").Scan(&message); err != nil || len(message) == 0 {
		return nil, err
	}
	mark := &storev1.Conversion{}
	return mark, decode(message, mark)
}

// checkConverted refuses a database with an unfinished conversion.
func checkConverted(ctx context.Context, conn *pgx.Conn) error {
	mark, err := conversion(ctx, conn)
	if err == nil && mark != nil && !mark.GetFinished() {
		err = fmt.Errorf("%w: it has only a part of %s: run 'tilth tracker convert' again, or %s", records.ErrUnfinished, mark.GetSource(), emptyHint)
	}
	return err
}

// emptyHint describes to users how to empty the database.
const emptyHint = "empty it (DROP SCHEMA " + schemaName + " CASCADE)"

// Name implements records.Stopped.
func (s *Stopped) Name() string { return s.db.name }

// EmptyHint implements records.Target.
func (s *Stopped) EmptyHint() string { return emptyHint }

// Close implements records.Stopped.
func (s *Stopped) Close() error {
	s.db.disconnect()
	return nil
}

// explain adds the name of the database to an error.
func (s *Stopped) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s: %w", s.db.name, err)
}

// State implements records.Stopped. It combines each shard's generation, which changes when a tracker or a conversion
// opens it, with the number of its last transaction.
func (s *Stopped) State(ctx context.Context) (state string, err error) {
	var epochs int64
	err = s.db.conn.QueryRow(ctx, "SELECT string_agg(life || ' ' || transaction, ' ' ORDER BY shard), sum(epoch)::bigint FROM tracker").Scan(&state, &epochs)
	if err == nil && epochs != s.epochs {
		err = fmt.Errorf("%w: its epochs sum up to %d, not %d", records.ErrTakenOver, epochs, s.epochs)
	}
	return "postgres " + state, s.explain(ctx, err)
}

// Conversion implements records.Target.
func (s *Stopped) Conversion(ctx context.Context) (*storev1.Conversion, error) {
	mark, err := conversion(ctx, s.db.conn.Conn)
	return mark, s.explain(ctx, err)
}

// Put implements records.Target.
func (s *Stopped) Put(ctx context.Context, kind records.RowKind, rows []records.Row, mark *storev1.Conversion) error {
	message, err := proto.Marshal(mark)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, s.db.conn, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, `UPDATE tracker SET transaction = transaction + 1, life = CASE conversion WHEN '' THEN $3 ELSE life END, conversion = $1
			WHERE epoch = $2`, message, s.db.epoch, records.NewGeneration())
		if err == nil && done.RowsAffected() != 1 {
			err = fmt.Errorf("%w: this one began epoch %d, which is over", records.ErrTakenOver, s.db.epoch)
		}
		if err != nil || len(rows) == 0 {
			return err
		}
		return putRows(ctx, tx, kind, rows)
	})
	if err == nil {
		err = s.db.conn.confirmed()
	}
	return s.explain(ctx, err)
}

// rowTable maps the rows of a kind to a table.
type rowTable struct {
	// name is the table, columns the columns to insert into.
	name    string
	columns []string
	// from is what to read from; empty means the table.
	from string
	// order lists the columns to sort by; key and value are expressions for the row's key and value.
	order, key, value string
	// where excludes rows that do not belong to the kind.
	where string
	// after returns the values of the order columns for a key (nil means before the first row).
	after func(key []byte) []any
	// row returns the column values of a row.
	row func(records.Row) ([]any, error)
}

// messages returns the mapping of a table of messages by id or name.
func messages(name, key, value string) *rowTable {
	return &rowTable{
		name: name, columns: []string{key, value}, order: key, key: key, value: value, where: "true",
		after: func(after []byte) []any { return []any{present(after)} },
		row:   func(r records.Row) ([]any, error) { return []any{present(r.Key), present(r.Value)}, nil },
	}
}

// ofFirstShard restricts a table with a row per shard and name to the first shard's rows.
func ofFirstShard(t *rowTable) *rowTable {
	t.from = fmt.Sprintf("(SELECT DISTINCT ON (%[2]s) * FROM %[1]s ORDER BY %[2]s, shard) AS %[1]s", t.name, t.key)
	return t
}

// present returns value, or an empty slice instead of nil, which would be NULL.
func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// rowTables maps kinds to tables, except for RowLastJob.
var rowTables = map[records.RowKind]*rowTable{
	records.RowSpec: messages("specs", "id", "message"), records.RowRequest: messages("requests", "key", "job"),
	records.RowEnded: messages("ended", "id", "message"), records.RowBatch: messages("batches", "id", "message"),
	records.RowClosed: messages("closed_batches", "id", "message"), records.RowAgent: ofFirstShard(messages("agents", "name", "message")),
	records.RowDevice: ofFirstShard(messages("devices", "name", "message")), records.RowWorkload: messages("workloads", "digest", "canonical"),
	records.RowDropped: {
		name: "dropped", columns: []string{"id"}, order: "id", key: "id", value: `''::bytea`, where: "true",
		after: func(after []byte) []any { return []any{present(after)} },
		row:   func(r records.Row) ([]any, error) { return []any{r.Key}, nil },
	},
	records.RowJob: {
		name: "jobs", columns: []string{"id", "message", "open"}, order: "id", key: "id", where: "true",
		value: `CASE WHEN open THEN '\x01'::bytea ELSE '\x00'::bytea END || message`,
		after: func(after []byte) []any { return []any{present(after)} },
		row: func(r records.Row) ([]any, error) {
			if len(r.Value) == 0 {
				return nil, damagedRow(records.RowJob, r.Key)
			}
			return []any{r.Key, r.Value[1:], r.Value[0] != 0}, nil
		},
	},
	records.RowProgress: byJob(records.RowProgress, "progress", "task", "substring(int8send(task), 5)", 4),
	records.RowEvent:    byJob(records.RowEvent, "events", "sequence", "int8send(sequence)", 8),
	records.RowGroup: {
		name: "groups", columns: []string{"number", "name", "workload", "best"},
		order: "substring(name, 1, 1024), name", key: "name", where: "true",
		value: `int4send(number) || coalesce((SELECT string_agg(set_byte('\x00'::bytea, 0, octet_length(k)) || k, ''::bytea ORDER BY i)
			FROM unnest(best) WITH ORDINALITY AS b (k, i)), '')`,
		after: func(after []byte) []any { return []any{present(after[:min(len(after), 1024)]), present(after)} },
		row:   groupColumns,
	},
	records.RowRecord: {
		name: "records", columns: []string{"grp", "key", "message"}, order: "grp, key", key: "int4send(grp) || key", value: "message", where: "true",
		after: func(after []byte) []any {
			if at, ok := placeOf(after); ok {
				return []any{int64(at.group), at.key[:]}
			}
			return []any{int64(math.MinInt32), []byte{}}
		},
		row: func(r records.Row) ([]any, error) {
			at, ok := placeOf(r.Key)
			if !ok {
				return nil, damagedRow(records.RowRecord, r.Key)
			}
			return []any{at.group, at.key[:], present(r.Value)}, nil
		},
	},
	records.RowImport: {
		name: "imports", columns: []string{"number", "whole"}, order: "number", key: "int8send(number)", value: `''::bytea`,
		where: "whole", // incomplete imports are dropped
		after: func(after []byte) []any { return []any{numberAt(after, 0)} },
		row:   func(r records.Row) ([]any, error) { return []any{numberAt(r.Key, 0), true}, nil },
	},
	records.RowChunk: {
		name: "import_chunks", columns: []string{"import", "number", "records"}, order: "import, number",
		key: "int8send(import) || int8send(number)", value: "records",
		where: "EXISTS (SELECT FROM imports i WHERE i.number = import AND i.whole)",
		after: func(after []byte) []any { return []any{numberAt(after, 0), numberAt(after, 8)} },
		row: func(r records.Row) ([]any, error) {
			return []any{numberAt(r.Key, 0), numberAt(r.Key, 8), present(r.Value)}, nil
		},
	},
}

// numberAt decodes eight bytes of a key; math.MinInt64 if they are missing.
func numberAt(key []byte, at int) int64 {
	if len(key) < at+8 {
		return math.MinInt64
	}
	return int64(binary.BigEndian.Uint64(key[at:]))
}

// damagedRow returns the error for a malformed row of a kind.
func damagedRow(kind records.RowKind, key []byte) error {
	return fmt.Errorf("%w: row %q of the %s", records.ErrDamaged, key, kind)
}

// byJob returns the mapping of a table of messages by job and number, which has size bytes in row keys.
func byJob(kind records.RowKind, name, number, send string, size int) *rowTable {
	split := func(key []byte) (job []byte, n int64, ok bool) {
		end := len(key) - size
		if end < 1 || key[end-1] != 0 {
			return nil, 0, false
		}
		var wide [8]byte
		copy(wide[len(wide)-size:], key[end:])
		return key[:end-1], int64(binary.BigEndian.Uint64(wide[:])), true
	}
	return &rowTable{
		name: name, columns: []string{"job", number, "message"}, order: "job, " + number, key: `job || '\x00'::bytea || ` + send, value: "message", where: "true",
		after: func(after []byte) []any {
			if job, n, ok := split(after); ok {
				return []any{present(job), n}
			}
			return []any{[]byte{}, int64(math.MinInt64)}
		},
		row: func(r records.Row) ([]any, error) {
			job, n, ok := split(r.Key)
			if !ok {
				return nil, damagedRow(kind, r.Key)
			}
			return []any{present(job), n, present(r.Value)}, nil
		},
	}
}

// groupColumns returns the column values of a group's row.
func groupColumns(r records.Row) ([]any, error) {
	g, err := records.DecodeGroupRow(r.Value)
	if err == nil && g.Number > math.MaxInt32 {
		err = damagedRow(records.RowGroup, r.Key)
	}
	if err != nil {
		return nil, err
	}
	best := make([][]byte, len(g.Best))
	for level, key := range g.Best {
		best[level] = present(key)
	}
	return []any{int32(g.Number), r.Key, []byte(records.GroupOf(r.Key).Workload), best}, nil
}

// query returns the statement for a page. Its last two parameters bound the rows and their bytes.
func (t *rowTable) query(after []any) string {
	bounds := "$1"
	if len(after) == 2 {
		bounds = "$1, $2"
	}
	n := len(after)
	return fmt.Sprintf(`SELECT k, v FROM (
		SELECT k, v, sum(octet_length(k) + octet_length(v)) OVER (ORDER BY k) - octet_length(k) - octet_length(v) AS before FROM (
			SELECT %s AS k, %s AS v FROM %s WHERE (%s) > (%s) AND (%s) ORDER BY %s LIMIT $%d
		) AS page
	) AS summed WHERE before < $%d ORDER BY k`, t.key, t.value, cmp.Or(t.from, t.name), t.order, bounds, t.where, t.order, n+1, n+2)
}

// Page implements records.Stopped.
func (s *Stopped) Page(ctx context.Context, kind records.RowKind, after []byte) (rows []records.Row, err error) {
	var query string
	var args []any
	switch t := rowTables[kind]; {
	case t != nil:
		args = t.after(after)
		query = t.query(args)
		args = append(args, records.RowsPerPage, records.BytesPerPage)
	case kind == records.RowLastJob:
		query, args = "SELECT $1::bytea, last_job FROM tracker WHERE last_job <> '' AND $2 ORDER BY last_job DESC LIMIT 1", []any{[]byte(records.LastJobKey), after == nil}
	default:
		return nil, fmt.Errorf("no such rows: %s", kind)
	}
	answer, err := s.db.conn.Query(ctx, query, args...)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	var key, value []byte
	_, err = pgx.ForEachRow(answer, []any{&key, &value}, func() error {
		rows = append(rows, records.Row{Key: bytes.Clone(key), Value: bytes.Clone(value)})
		return nil
	})
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return rows, nil
}

// putRows inserts rows of a kind.
func putRows(ctx context.Context, tx pgx.Tx, kind records.RowKind, rows []records.Row) error {
	if kind == records.RowLastJob {
		_, err := tx.Exec(ctx, "UPDATE tracker SET last_job = $1", present(rows[0].Value))
		return err
	}
	t := rowTables[kind]
	if t == nil {
		return fmt.Errorf("no such rows: %s", kind)
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) { return t.row(rows[i]) }))
	return err
}
