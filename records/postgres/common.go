package postgres

import (
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

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
