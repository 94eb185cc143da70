package postgres

import (
	"crypto/sha256"
	"maps"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// commonLock is the key of the advisory lock that protects the records shared by all shards. Transactions that only
// add to existing groups hold it in shared mode and lock the groups' rows in order of their numbers; all others hold
// it exclusively. To avoid deadlocks, it is the first lock on shared rows that a transaction takes.
const commonLock = 1<<56 | advisoryLock

// share acquires the locks for shared rows and refreshes the cache of groups, which other processes may have changed.
func (t *txn) share(group []commit, ops []records.Op) error {
	clear(t.groups.known)
	t.groups.last = 0
	of, alone := commonGroups(ops)
	var numbers []int32
	alone = alone || slices.ContainsFunc(group, func(c commit) bool { return c.common })
	if !alone {
		var err error
		if numbers, err = t.groups.find(t, of); err != nil {
			return err
		}
		alone = len(numbers) < len(of)
	}
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

// commonGroups returns the groups that operations add to. alone reports that they change more than existing groups.
func commonGroups(ops []records.Op) (of []records.Group, alone bool) {
	there := map[records.Group]bool{}
	for _, op := range ops {
		switch op := op.(type) {
		case records.AppendTrials:
			there[op.Group] = true
		case records.PutNew, records.AddRecord, records.SuspectBests:
			return nil, true
		}
	}
	return slices.Collect(maps.Keys(there)), false
}

// findSQL looks up each group separately, for the same reason as lookSQL.
const findSQL = `SELECT found.number, found.name FROM unnest($1::bytea[]) AS wanted (sum),
	LATERAL (SELECT number, name FROM groups WHERE sha256(name) = wanted.sum OFFSET 0) AS found`

// find returns the sorted numbers of those groups that exist.
func (s *groups) find(t *txn, of []records.Group) (numbers []int32, err error) {
	if len(s.numbers)+len(of) > maxGroups {
		clear(s.numbers)
	}
	var unknown [][]byte
	for _, g := range of {
		if s.numbers[g] == 0 {
			sum := sha256.Sum256([]byte(g.Name()))
			unknown = append(unknown, sum[:])
		}
	}
	if len(unknown) > 0 {
		var number int32
		var name []byte
		err = t.query(findSQL, []any{unknown}, []any{&number, &name}, func() error {
			s.numbers[records.GroupOf(name)] = number
			return nil
		})
	}
	for _, g := range of {
		if number := s.numbers[g]; number != 0 {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

// lock locks and reads the rows of groups.
func (s *groups) lock(t *txn, numbers []int32) error {
	found := map[int32]*group{}
	keys := map[int32][][]byte{}
	var number int32
	var name []byte
	var best [][]byte
	err := t.query("SELECT number, name, best FROM groups WHERE number = ANY($1) ORDER BY number FOR UPDATE", []any{numbers}, []any{&number, &name, &best}, func() error {
		g := &group{number: number}
		found[number], keys[number], s.known[records.GroupOf(name)] = g, slices.Clone(best), g
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
			stored[place{number, k}] = records.Essentials(r.GetMeasurement())
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
