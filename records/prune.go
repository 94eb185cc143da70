package records

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// PruneOptions say which records stay. The best of each workload and target at each level of numerics, and all records
// of jobs that have not ended, stay whatever they say.
type PruneOptions struct {
	// KeepBest is how many of the fastest verified records of each workload and target stay, KeepRecent how many of
	// the newest.
	KeepBest, KeepRecent int
	// Target and Workload bound what is looked at; empty = all.
	Target, Workload string
}

// Prune removes the records that do not stay, a bounded number in a transaction, and returns how many went and how
// many of those looked at stayed. When it is interrupted some are gone and the file is as good as before.
func (db *DB) Prune(ctx context.Context, opts PruneOptions) (removed, kept uint64, err error) {
	var groups [][]byte
	err = db.view(func(tx *txn) error {
		return eachGroup(tx, opts.Target, opts.Workload, func(group []byte) error {
			groups = append(groups, bytes.Clone(group))
			return nil
		})
	})
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

// removedAtOnce bounds how long a transaction of a prune holds up others.
const removedAtOnce = 1000

func (db *DB) pruneGroup(ctx context.Context, group []byte, opts PruneOptions) (removed, kept uint64, err error) {
	outlines, err := db.outlines(ctx, group)
	if err != nil {
		return 0, 0, err
	}
	superfluous := prune(outlines, opts)
	kept = uint64(len(outlines) - len(superfluous))
	for keys := range slices.Chunk(superfluous, removedAtOnce) {
		var spared uint64 // belongs to the writer until it is done
		remove := func(tx *txn) (err error) {
			spared, err = tx.removeRecords(group, keys)
			return err
		}
		if err := db.maintain(remove).Wait(ctx); err != nil {
			return removed, kept, err
		}
		removed += uint64(len(keys)) - spared
		kept += spared
	}
	return removed, kept, nil
}

// outline is what pruning needs of a record; there may be millions of a group in memory.
type outline struct {
	key       [recordKeyBytes]byte
	candidate uint64  // the beginning of its digest
	latency   float64 // 0 = not verified
	job       int32   // its place among the jobs of the group's records
	refutes   bool
	needed    bool // it is the best at some level, or its job has not ended
}

// outlines returns those of a group's records, oldest first.
func (db *DB) outlines(ctx context.Context, group []byte) (all []outline, err error) {
	jobs := map[string]int32{}
	err = db.eachPage(ctx, group, func(key []byte, r *tilthv1.Record) error {
		m := r.GetMeasurement()
		if _, known := jobs[r.GetJobId()]; !known {
			jobs[r.GetJobId()] = int32(len(jobs))
		}
		o := outline{job: jobs[r.GetJobId()], candidate: beginning(m.GetCandidate().GetDigest()), refutes: Refutes(m)}
		copy(o.key[:], key)
		if m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE {
			o.latency = m.GetLatencySeconds()
		}
		all = append(all, o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Afterwards: a job that begins meanwhile has none of these records.
	err = db.view(func(tx *txn) error {
		best, err := bestKeys(tx, group)
		if err != nil {
			return err
		}
		open := openAmong(tx, jobs)
		for i := range all {
			all[i].needed = open[all[i].job] || best[string(all[i].key[:])]
		}
		return nil
	})
	return all, err
}

// beginning is the number that the first 16 digits of a digest say; others have others, but for chances that nobody
// will see.
func beginning(digest string) uint64 {
	n, _ := strconv.ParseUint(digest[:min(16, len(digest))], 16, 64)
	return n
}

// openAmong says which of the jobs have not ended, by their places.
func openAmong(tx *txn, jobs map[string]int32) []bool {
	open := make([]bool, len(jobs))
	for job, place := range jobs {
		open[place] = job != "" && tx.table(bucketOpen).has([]byte(job))
	}
	return open
}

// bestKeys are the keys of the best records of a group at all levels.
func bestKeys(tx *txn, group []byte) (map[string]bool, error) {
	keys := map[string]bool{}
	for level := range Levels {
		key, _, err := bestAllowed(tx, tx.groupNumber(group), level)
		if err != nil {
			return nil, err
		}
		keys[string(key)] = true
	}
	return keys, nil
}

// prune returns the keys of the records that do not stay, in their order.
func prune(all []outline, opts PruneOptions) (superfluous [][]byte) {
	refuted := map[uint64]bool{}
	for _, o := range all {
		refuted[o.candidate] = refuted[o.candidate] || o.refutes
	}
	stays := make([]bool, len(all))
	var verified []int
	for i, o := range all {
		stays[i] = o.needed || i >= len(all)-opts.KeepRecent
		if o.latency > 0 && !refuted[o.candidate] {
			verified = append(verified, i)
		}
	}
	slices.SortStableFunc(verified, func(a, b int) int { return cmp.Compare(all[a].latency, all[b].latency) })
	for _, i := range verified[:min(opts.KeepBest, len(verified))] {
		stays[i] = true
	}
	// What refutes a candidate stays as long as a record says that it is good.
	good := map[uint64]bool{}
	for i, o := range all {
		good[o.candidate] = good[o.candidate] || stays[i] && o.latency > 0
	}
	for i, o := range all {
		if !stays[i] && !(o.refutes && good[o.candidate]) {
			superfluous = append(superfluous, o.key[:])
		}
	}
	return superfluous
}

// removeRecords removes records of a group, but for those that have become the best meanwhile, and counts these.
func (tx *txn) removeRecords(name []byte, keys [][]byte) (spared uint64, err error) {
	g, err := tx.groups.of(tx, groupOf(name))
	if err != nil {
		return 0, err
	}
	rows := tx.table(bucketRecords)
	for _, key := range keys {
		if g.bests.Has(withinGroup(key)) {
			spared++
		} else if err := rows.remove(key); err != nil {
			return spared, err
		}
	}
	return spared, nil
}
