package chaos

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/internal/wire"
)

// fence is a transaction's update of the row that assigns a shard to a tracker, in commit order per shard. The row is
// locked until the transaction ends.
type fence struct {
	xid    uint64
	shard  int
	epoch  int64
	client string
}

// change is a change of a row that belongs to a shard.
type change struct {
	xid   uint64
	shard int
	table string
}

// shardTables maps the tables whose rows belong to shards to the column that identifies the shard: its number, or the
// id of a job or batch.
var shardTables = map[string]string{
	"jobs": "shard", "batches": "shard", "agents": "shard", "devices": "shard", "ended": "shard", "dropped": "shard",
	"closed_batches": "id", "events": "job", "progress": "job", "requests": "job",
}

// watch installs triggers that log all changes in the database. They are independent of the trackers' own checks.
func (c *cluster) watch(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.socket())
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(ctx, `
		CREATE TABLE public.fences (place bigserial, xid xid8, shard int, epoch bigint, client text);
		CREATE TABLE public.changes (xid xid8, relation text, shard int, subject bytea);
		CREATE FUNCTION public.fence() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO public.fences (xid, shard, epoch, client)
				VALUES (pg_current_xact_id(), NEW.shard, NEW.epoch, coalesce(host(inet_client_addr()), ''));
			RETURN NULL; END $$;
		CREATE FUNCTION public.change() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE changed record; BEGIN
			IF TG_OP = 'DELETE' THEN changed := OLD; ELSE changed := NEW; END IF;
			CASE TG_ARGV[0]
				WHEN 'shard' THEN INSERT INTO public.changes VALUES (pg_current_xact_id(), TG_TABLE_NAME, changed.shard, NULL);
				WHEN 'job' THEN INSERT INTO public.changes VALUES (pg_current_xact_id(), TG_TABLE_NAME, NULL, changed.job);
				WHEN 'id' THEN INSERT INTO public.changes VALUES (pg_current_xact_id(), TG_TABLE_NAME, NULL, changed.id);
			END CASE;
			RETURN NULL; END $$;
		CREATE TRIGGER fence AFTER UPDATE ON tilth.tracker FOR EACH ROW EXECUTE FUNCTION public.fence()`)
	for table, column := range shardTables {
		if err == nil {
			_, err = conn.Exec(ctx, fmt.Sprintf(`CREATE TRIGGER change AFTER INSERT OR UPDATE OR DELETE ON tilth.%s
				FOR EACH ROW EXECUTE FUNCTION public.change('%s')`, table, column))
		}
	}
	return err
}

// checkFences checks the database's log.
func (c *cluster) checkFences(ctx context.Context, result *Result) (violations []string, err error) {
	conn, err := pgx.Connect(ctx, c.socket())
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(ctx, "SELECT xid::text::bigint, shard, epoch, client FROM public.fences ORDER BY place")
	if err != nil {
		return nil, err
	}
	fences, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f fence, err error) {
		return f, row.Scan(&f.xid, &f.shard, &f.epoch, &f.client)
	})
	if err != nil {
		return nil, err
	}
	if rows, err = conn.Query(ctx, "SELECT xid::text::bigint, relation, coalesce(shard, -1), subject FROM public.changes"); err != nil {
		return nil, err
	}
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (of change, err error) {
		var subject []byte
		err = row.Scan(&of.xid, &of.table, &of.shard, &subject)
		if subject != nil {
			of.shard = wire.ShardOf(string(subject))
		}
		return of, err
	})
	result.Counts["transactions of trackers"] += len(fences)
	result.Counts["changes of rows that a shard's transaction made"] += len(changes)
	if len(fences) == 0 || len(changes) == 0 {
		violations = append(violations, "the database wrote down no transaction of a tracker: its triggers do not work")
	}
	return append(violations, judgeFences(fences, changes)...), err
}

// judgeFences checks that each epoch belongs to one tracker, that epochs increase, and that all changes to a shard's
// rows happen in one of its epochs.
func judgeFences(fences []fence, changes []change) (violations []string) {
	type epoch struct {
		shard int
		epoch int64
	}
	type touch struct {
		xid   uint64
		shard int
	}
	last := map[int]int64{}
	of := map[epoch]string{}
	fenced := map[touch]bool{}
	for _, f := range fences {
		if f.epoch < last[f.shard] {
			violations = append(violations, fmt.Sprintf("shard %d: %s wrote in epoch %d, after epoch %d had begun", f.shard, f.client, f.epoch, last[f.shard]))
		}
		last[f.shard] = max(last[f.shard], f.epoch)
		key := epoch{f.shard, f.epoch}
		if who, known := of[key]; known && who != f.client {
			violations = append(violations, fmt.Sprintf("shard %d: epoch %d is of %s, and %s wrote in it", f.shard, f.epoch, who, f.client))
		}
		of[key] = f.client
		fenced[touch{f.xid, f.shard}] = true
	}
	for _, c := range changes {
		if !fenced[touch{c.xid, c.shard}] {
			violations = append(violations, fmt.Sprintf("a row of %s was changed by a transaction without an epoch of its shard, %d", c.table, c.shard))
		}
	}
	return violations
}
