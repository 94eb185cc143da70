package postgres

import (
	"cmp"
	"context"

	"github.com/tilth-dev/tilth/records"
)

// Prune implements records.Measurements.
func (db *DB) Prune(ctx context.Context, opts records.PruneOptions) (removed, kept uint64, err error) {
	err = db.eachGroup(ctx, cmp.Or(opts.Target, records.EveryTarget), opts.Workload, func(g numbered) error {
		gone, stayed, err := db.pruneGroup(ctx, g, opts)
		removed, kept = removed+gone, kept+stayed
		return err
	})
	return removed, kept, err
}

func (db *DB) pruneGroup(ctx context.Context, g numbered, opts records.PruneOptions) (removed, kept uint64, err error) {
	outlines, err := db.outlines(ctx, g)
	if err != nil {
		return 0, 0, err
	}
	return opts.Remove(outlines, func(keys []records.Key) (uint64, error) {
		var spared uint64 // owned by the writer until it is done
		remove := func(t *txn) (err error) {
			spared, err = t.removeRecords(g.Group, keys)
			return err
		}
		if err := db.maintainRecords(remove).Wait(ctx); err != nil {
			return 0, err
		}
		return spared, nil
	})
}

// outlines returns the outlines of a group's records, oldest first.
func (db *DB) outlines(ctx context.Context, g numbered) ([]records.Outline, error) {
	var o records.Outlines
	err := db.eachRecord(ctx, g, func(r stored) error {
		o.Add(r.key, r.Record)
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Check open jobs last: a job that starts meanwhile does not use these records.
	err = db.view(ctx, func(v *view) error {
		best, err := setOf(v, "SELECT unnest(best) FROM groups WHERE number = $1", g.number)
		if err != nil {
			return err
		}
		open, err := openAmong(v, o.Jobs)
		o.Need(func(job string) bool { return open[job] }, func(key records.Key) bool { return best[string(key[:])] })
		return err
	})
	return o.All, err
}

// openAmong returns which of the jobs are open.
func openAmong(v *view, jobs []string) (map[string]bool, error) {
	ids := make([][]byte, len(jobs))
	for i, id := range jobs {
		ids[i] = []byte(id)
	}
	return setOf(v, "SELECT id FROM jobs WHERE id = ANY($1) AND open", ids)
}

// setOf returns the values of a query with one column.
func setOf(v *view, sql string, args ...any) (map[string]bool, error) {
	set := map[string]bool{}
	var value []byte
	err := v.query(sql, args, []any{&value}, func() error {
		set[string(value)] = true
		return nil
	})
	return set, err
}

// removeRecords removes records of a group. It spares and counts those that have become the best in the meantime.
func (t *txn) removeRecords(of records.Group, keys []records.Key) (spared uint64, err error) {
	g, err := t.groups.of(t, of)
	if err != nil {
		return 0, err
	}
	var gone [][]byte
	for _, key := range keys {
		if g.best.Has(key) {
			spared++
			continue
		}
		gone = append(gone, key[:])
		delete(t.there, place{g.number, key})
	}
	t.do("DELETE FROM records WHERE grp = $1 AND key = ANY($2)", g.number, gone)
	return spared, nil
}
