package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/records"
)

// shareOut ensures that the database has the requested number of shards. A database of one shard is divided; no other
// process has that shard now.
func (db *DB) shareOut(ctx context.Context) error {
	var has int
	err := limited(ctx, db.timeout, func(ctx context.Context) error {
		return db.conn.QueryRow(ctx, "SELECT count(*) FROM tracker").Scan(&has)
	})
	if err != nil {
		return err
	}
	want := max(db.opts.Shards, 1)
	if db.shard == 0 && has == 1 && want > 1 {
		return limited(ctx, changeTimeout, func(ctx context.Context) error {
			return pgx.BeginFunc(ctx, db.conn, func(tx pgx.Tx) error { return makeShards(ctx, tx, want) })
		})
	}
	return checkShards(has, want)
}

// makeShards divides a database of one shard. Jobs converted from a sharded store move to the shards named by their
// ids, and decisions about devices are copied to all shards.
func makeShards(ctx context.Context, tx pgx.Tx, want int) error {
	_, err := tx.Exec(ctx, `INSERT INTO tracker (shard, epoch, transaction, life, last_job)
		SELECT n, 0, 0, '', (SELECT last_job FROM tracker WHERE shard = 0) FROM generate_series(1, $1::int - 1) AS n`, want)
	if err == nil {
		_, err = tx.Exec(ctx, "INSERT INTO heartbeat (shard, beats, looks) SELECT n, 0, 0 FROM generate_series(1, $1::int - 1) AS n", want)
	}
	if err == nil {
		_, err = tx.Exec(ctx, "INSERT INTO devices (shard, name, message) SELECT n, name, message FROM devices, generate_series(1, $1::int - 1) AS n", want)
	}
	for _, table := range []string{"jobs", "ended", "dropped", "batches"} {
		if err == nil {
			_, err = tx.Exec(ctx, "UPDATE "+table+" SET shard = "+shardOfID+" WHERE "+shardOfID+" > 0")
		}
	}
	var last int
	if err == nil {
		err = tx.QueryRow(ctx, "SELECT coalesce(max(shard), 0) FROM jobs").Scan(&last)
	}
	if err == nil && last >= want {
		err = fmt.Errorf("%w: it has jobs of shard %d: start it with --shards %d or more", records.ErrShards, last, last+1)
	}
	return err
}

// shardOfID computes wire.ShardOf of an id column in SQL.
var shardOfID = fmt.Sprintf(`coalesce((
	SELECT n FROM (
		SELECT (strpos('%[1]s', substr(life, 1, 1)) - 1) * length('%[1]s') + strpos('%[1]s', substr(life, 2, 1)) - 1 AS n
		FROM (SELECT split_part(split_part(convert_from(id, 'UTF8'), '.', 1), '-', 3) AS life) AS name
		WHERE life ~ '^[%[1]s]{8}$'
	) AS marked WHERE n < %[2]d), 0)`, wire.GenerationLetters, wire.MaxShards)

func checkShards(has, want int) error {
	if has == want {
		return nil
	}
	return fmt.Errorf("%w: it has %d, and this tracker is to have %d: start it with --shards %d", records.ErrShards, has, want, has)
}

// checkOneShard refuses a sharded database as the target of a conversion, since it is not new.
func checkOneShard(ctx context.Context, conn *pgx.Conn) error {
	var has int
	err := conn.QueryRow(ctx, "SELECT count(*) FROM tracker").Scan(&has)
	if err == nil && has > 1 {
		err = fmt.Errorf("%w: it has %d shards: name another one, or %s", records.ErrNotEmpty, has, emptyHint)
	}
	return err
}

// awaitShard waits until the database has the shard and a schema that this version can use. The process that opens
// shard 0 creates both, except for migrations that can run while others are active.
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
		case err != nil && !isTransient(err):
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
	ready, err := db.settle(ctx, conn)
	if err != nil || !ready {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	var has int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM tracker").Scan(&has); err != nil || has == 1 {
		return false, err
	}
	return true, checkShards(has, db.opts.Shards)
}

// eachOwn visits those jobs that belong to the shard, in order, with their rows. A missing or damaged row is empty.
func (db *DB) eachOwn(v *view, jobs []string, visit func(id string, row *storev1.JobRow)) error {
	ids := make([][]byte, len(jobs))
	for i, id := range jobs {
		ids[i] = []byte(id)
	}
	var id, message []byte
	var shard *int // nil if there is no row
	return v.query(`SELECT job, shard, message FROM unnest($1::bytea[]) WITH ORDINALITY AS wanted (job, place)
		LEFT JOIN jobs ON id = job ORDER BY place`, []any{ids}, []any{&id, &shard, &message}, func() error {
		of := wire.ShardOf(string(id))
		if shard != nil {
			of = *shard
		}
		if db.opts.Shards > 1 && of != db.shard {
			return nil
		}
		row := &storev1.JobRow{}
		if decode(message, row) != nil {
			row = &storev1.JobRow{}
		}
		visit(string(id), row)
		return nil
	})
}
