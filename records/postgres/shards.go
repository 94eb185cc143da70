package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// shardedSQL says whether the schema knows of shards.
const shardedSQL = `EXISTS (SELECT FROM information_schema.columns WHERE table_schema = '` + schemaName + `' AND table_name = 'heartbeat' AND column_name = 'shard')`

// shareOut sees to it that the database has as many shards as it is opened with. A database of one gets more; nobody
// else has that one now.
func (db *DB) shareOut(ctx context.Context) error {
	var has int
	if err := db.conn.QueryRow(ctx, "SELECT count(*) FROM tracker").Scan(&has); err != nil {
		return err
	}
	want := max(db.opts.Shards, 1)
	if db.shard == 0 && has == 1 && want > 1 {
		return pgx.BeginFunc(ctx, db.conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO tracker (shard, epoch, transaction, life, last_job)
				SELECT n, 0, 0, '', (SELECT last_job FROM tracker WHERE shard = 0) FROM generate_series(1, $1::int - 1) AS n`, want)
			if err == nil {
				_, err = tx.Exec(ctx, "INSERT INTO heartbeat (shard, beats, looks) SELECT n, 0, 0 FROM generate_series(1, $1::int - 1) AS n", want)
			}
			return err
		})
	}
	return checkShards(has, want)
}

func checkShards(has, want int) error {
	if has == want {
		return nil
	}
	return fmt.Errorf("%w: it has %d, and this tracker is to have %d: start it with --shards %d", records.ErrShards, has, want, has)
}

// checkOneShard refuses a database of several shards: the rows of a conversion have none.
func checkOneShard(ctx context.Context, conn *pgx.Conn) error {
	var has int
	err := conn.QueryRow(ctx, "SELECT count(*) FROM tracker").Scan(&has)
	if err == nil && has > 1 {
		err = fmt.Errorf("it has %d shards, and only a database of one is converted", has)
	}
	return err
}

// awaitShard waits until the database has the shard, and is of this version: whoever opens shard 0 sees to both.
func (db *DB) awaitShard(ctx context.Context) error {
	if db.shard == 0 {
		return nil
	}
	var conn *session
	defer func() {
		if conn != nil {
			hangUp(conn.Conn)
		}
	}()
	for {
		err := error(nil)
		if conn == nil {
			conn, err = db.reach(ctx)
		}
		ready := false
		if err == nil {
			ready, err = db.shardReady(ctx, conn.Conn)
		}
		switch {
		case err == nil && ready:
			return nil
		case err != nil && !passes(err):
			return err
		case err != nil && conn != nil:
			hangUp(conn.Conn)
			conn = nil
		}
		if err := pause(ctx, nil, lookEvery); err != nil {
			return err
		}
	}
}

func (db *DB) shardReady(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var sharded bool
	if err := conn.QueryRow(ctx, "SELECT "+shardedSQL).Scan(&sharded); err != nil || !sharded {
		return false, err
	}
	version, err := versionOf(ctx, conn)
	if err != nil || version < len(migrations) {
		return false, err
	}
	var has int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM tracker").Scan(&has); err != nil || has == 1 {
		return false, err
	}
	return true, checkShards(has, db.opts.Shards)
}

// own says whether a job is one of the shard. Its row may be gone.
func (db *DB) own(v *view, job string) (own bool, err error) {
	if db.opts.Shards <= 1 {
		return true, nil
	}
	var shard int
	there, err := one(v, "SELECT shard FROM jobs WHERE id = $1", []any{[]byte(job)}, []any{&shard})
	if err == nil && !there {
		shard = wire.ShardOf(job)
	}
	return shard == db.shard, err
}

// commonLock is the key of the lock by which transactions of different shards share the records. Those that only add
// to groups which exist hold it together, and lock the groups' rows in the order of their numbers; all others have it
// alone. It is the first lock of common rows that a transaction takes, so that none waits for another in a circle.
const commonLock = 1<<56 | advisoryLock

// share has the transaction take what it needs of the rows that are common to all shards, and remember of them only
// what is so now: other processes changed them meanwhile.
func (t *txn) share(group []commit, ops []records.Op) error {
	clear(t.groups.known)
	t.groups.last = 0
	numbers, alone := t.commonGroups(ops)
	alone = alone || slices.ContainsFunc(group, func(c commit) bool { return c.common })
	switch {
	case alone:
		t.do("SELECT pg_advisory_xact_lock($1)", int64(commonLock))
		return nil
	case len(numbers) == 0:
		return nil
	}
	t.do("SELECT pg_advisory_xact_lock_shared($1)", int64(commonLock))
	return t.groups.lock(t, numbers)
}

// commonGroups are the numbers of the groups to which operations add; alone says that they change more than those.
func (t *txn) commonGroups(ops []records.Op) (numbers []int32, alone bool) {
	for _, op := range ops {
		var of records.Group
		switch op := op.(type) {
		case records.AppendTrials:
			of = op.Group
		case records.PutNew, records.AddRecord, records.SuspectBests:
			return nil, true
		default:
			continue
		}
		number := t.groups.numbers[of]
		if number == 0 {
			return nil, true
		}
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), false
}

// lock locks the rows of groups, and reads them.
func (s *groups) lock(t *txn, numbers []int32) error {
	found := map[int32]*group{}
	keys := map[int32][][]byte{}
	var number int32
	var name []byte
	var best [][]byte
	err := t.query("SELECT number, name, best FROM groups WHERE number = ANY($1) ORDER BY number FOR UPDATE", []any{numbers}, []any{&number, &name, &best}, func() error {
		g := &group{number: number}
		found[number], keys[number], s.known[groupOf(name)] = g, slices.Clone(best), g
		return nil
	})
	if err != nil {
		return err
	}
	stored := map[place]*tilthv1.Measurement{}
	var key, message []byte
	err = t.query(`SELECT r.grp, r.key, r.message FROM groups g JOIN records r ON r.grp = g.number AND r.key = ANY(g.best) WHERE g.number = ANY($1)`,
		[]any{numbers}, []any{&number, &key, &message}, func() error {
			k, err := keyOf(key)
			if err != nil {
				return err
			}
			r := &tilthv1.Record{}
			err = decode(message, r)
			stored[place{number, k}] = records.Gist(r.GetMeasurement())
			return err
		})
	if err != nil {
		return err
	}
	for number, g := range found {
		if err := g.take(keys[number], func(k records.Key) *tilthv1.Measurement { return stored[place{number, k}] }); err != nil {
			return err
		}
	}
	return nil
}

// Members counts the processes that serve some of the database's shards, with this one, which gives a sign of life
// under its id. It is by the server's clock, and decides about nothing but their shares.
type Members struct {
	id      string
	servers []*pgx.ConnConfig
	conn    *pgx.Conn // nil = there is none now
}

const (
	// memberSilence is after how long a member is counted no longer.
	memberSilence = "5 seconds"
	// memberKept is after how long its row goes.
	memberKept = "1 hour"
)

// NewMembers counts those of the database at an address. The caller closes it.
func NewMembers(address, id string) (*Members, error) {
	servers, err := parse(address)
	if err != nil {
		return nil, err
	}
	m := &Members{id: id}
	for _, s := range servers {
		m.servers = append(m.servers, s.ConnConfig)
	}
	return m, nil
}

// Count gives a sign of life, and counts the members.
func (m *Members) Count(ctx context.Context) (count int, err error) {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	if m.conn == nil {
		var failed []error
		for _, server := range m.servers {
			if m.conn, err = pgx.ConnectConfig(ctx, hasty(server)); err == nil {
				break
			}
			failed = append(failed, &connectError{err})
		}
		if m.conn == nil {
			return 0, several(failed)
		}
	}
	err = pgx.BeginFunc(ctx, m.conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO members (id, seen) VALUES ($1, now()) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen", []byte(m.id))
		if err == nil {
			err = tx.QueryRow(ctx, "SELECT count(*) FROM members WHERE seen > now() - interval '"+memberSilence+"'").Scan(&count)
		}
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM members WHERE seen < now() - interval '"+memberKept+"'")
		}
		return err
	})
	var said *pgconn.PgError
	if errors.As(err, &said) && said.Code == "42P01" { // there are no tables yet
		return 1, nil
	}
	if err != nil {
		m.hangUp()
	}
	return count, err
}

// Leave says that this process is no member any more.
func (m *Members) Leave() {
	if m.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = m.conn.Exec(ctx, "DELETE FROM members WHERE id = $1", []byte(m.id)) // silence says the same, later
	m.hangUp()
}

func (m *Members) hangUp() {
	hangUp(m.conn)
	m.conn = nil
}
