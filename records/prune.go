package records

import (
	"cmp"
	"slices"
	"strconv"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// PruneOptions say which records stay. The best of each workload and target at each level of numerics, and all records
// of jobs that have not ended, stay whatever they say.
type PruneOptions struct {
	// KeepBest is how many of the best verified records of each workload and target stay, KeepRecent how many of
	// the newest.
	KeepBest, KeepRecent int
	// Target and Workload bound what is looked at; empty = all.
	Target, Workload string
}

// Outline is what pruning needs of a record; there may be millions of a group in memory.
type Outline struct {
	Key Key
	// Job is what the store makes of the record's job.
	Job int32
	// Needed says that the record is the best at some level, or that its job has not ended.
	Needed    bool
	refutes   bool
	candidate uint64  // the beginning of its digest
	cost      float64 // 0 = not verified
}

// OutlineOf is that of a record which nothing is known to need.
func OutlineOf(key Key, m *tilthv1.Measurement) Outline {
	o := Outline{Key: key, candidate: beginning(m.GetCandidate().GetDigest()), refutes: Refutes(m)}
	if Verified(m) {
		o.cost = Cost(m)
	}
	return o
}

// beginning is the number that the first 16 digits of a digest say; others have others, but for chances that nobody
// will see.
func beginning(digest string) uint64 {
	n, _ := strconv.ParseUint(digest[:min(16, len(digest))], 16, 64)
	return n
}

// Superfluous returns the keys of the records of a group that do not stay, in their order. All are given oldest first.
func (opts PruneOptions) Superfluous(all []Outline) (superfluous []Key) {
	refuted := map[uint64]bool{}
	for _, o := range all {
		refuted[o.candidate] = refuted[o.candidate] || o.refutes
	}
	stays := make([]bool, len(all))
	var verified []int
	for i, o := range all {
		stays[i] = o.Needed || i >= len(all)-opts.KeepRecent
		if o.cost > 0 && !refuted[o.candidate] {
			verified = append(verified, i)
		}
	}
	slices.SortStableFunc(verified, func(a, b int) int { return cmp.Compare(all[a].cost, all[b].cost) })
	for _, i := range verified[:min(opts.KeepBest, len(verified))] {
		stays[i] = true
	}
	// What refutes a candidate stays as long as a record says that it is good.
	good := map[uint64]bool{}
	for i, o := range all {
		good[o.candidate] = good[o.candidate] || stays[i] && o.cost > 0
	}
	for i, o := range all {
		if !stays[i] && !(o.refutes && good[o.candidate]) {
			superfluous = append(superfluous, o.Key)
		}
	}
	return superfluous
}

// removedAtOnce bounds how long a transaction of a prune holds up others.
const removedAtOnce = 1000

// Remove has the records of a group that do not stay removed, some at a time, and returns how many went and how many
// stayed. remove removes those that are not the best, and counts the others, which have become it meanwhile. An error
// is one of it.
func (opts PruneOptions) Remove(all []Outline, remove func(keys []Key) (spared uint64, err error)) (removed, kept uint64, err error) {
	superfluous := opts.Superfluous(all)
	kept = uint64(len(all) - len(superfluous))
	for keys := range slices.Chunk(superfluous, removedAtOnce) {
		spared, err := remove(keys)
		if err != nil {
			return removed, kept, err
		}
		removed += uint64(len(keys)) - spared
		kept += spared
	}
	return removed, kept, nil
}
