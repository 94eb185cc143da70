package bolt

import (
	"cmp"
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Prune implements records.Measurements.
func (db *DB) Prune(ctx context.Context, opts records.PruneOptions) (removed, kept uint64, err error) {
	groups, err := db.groupsOf(cmp.Or(opts.Target, records.EveryTarget), opts.Workload)
	if err != nil {
		return 0, 0, err
	}
	for _, group := range groups {
		gone, stayed, err := db.pruneGroup(ctx, group, opts)
		removed += gone
		kept += stayed
		if err != nil {
			return removed, kept, err
		}
	}
	return removed, kept, nil
}

func (db *DB) pruneGroup(ctx context.Context, group []byte, opts records.PruneOptions) (removed, kept uint64, err error) {
	outlines, err := db.outlines(ctx, group)
	if err != nil {
		return 0, 0, err
	}
	return opts.Remove(outlines, func(keys []records.Key) (uint64, error) {
		var spared uint64 // owned by the writer until it is done
		remove := func(tx *txn) (err error) {
			spared, err = tx.removeRecords(group, keys)
			return err
		}
		if err := db.maintain(remove).Wait(ctx); err != nil {
			return 0, err
		}
		return spared, nil
	})
}

// outlines returns the outlines of a group's records, oldest first.
func (db *DB) outlines(ctx context.Context, group []byte) ([]records.Outline, error) {
	var o records.Outlines
	err := db.eachPage(ctx, group, func(key []byte, r *tilthv1.Record) error {
		o.Add(withinGroup(key), r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Check open jobs last: a job that starts meanwhile does not use these records.
	err = db.view(func(tx *txn) error {
		bests, err := bestsOf(tx, tx.groupNumber(group))
		o.Need(func(job string) bool { return job != "" && tx.table(bucketOpen).has([]byte(job)) }, bests.Has)
		return err
	})
	return o.All, err
}

// removeRecords removes records of a group. It spares and counts those that have become the best in the meantime.
func (tx *txn) removeRecords(name []byte, keys []records.Key) (spared uint64, err error) {
	g, err := tx.groups.of(tx, records.GroupOf(name))
	if err != nil {
		return 0, err
	}
	rows := tx.table(bucketRecords)
	for _, key := range keys {
		if g.bests.Has(key) {
			spared++
		} else if err := rows.remove(recordKey(g.number, key)); err != nil {
			return spared, err
		}
	}
	return spared, nil
}
