package postgres

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// groups is the writer's cache of groups, which saves a look-up of the best for each record. It is dropped when a
// transaction fails, and refreshed by share if other processes may have changed groups.
type groups struct {
	known map[records.Group]*group
	last  int32 // largest number used by groups or by records of lost groups; 0 if unknown
	// numbers caches the numbers of existing groups, even those not in known; see share.
	numbers map[records.Group]int32
}

// maxGroups bounds the cache. A group takes less than a kilobyte.
const maxGroups = 1 << 15

func newGroups() *groups {
	return &groups{known: map[records.Group]*group{}, numbers: map[records.Group]int32{}}
}

// group is a group's number, and its best records.
type group struct {
	number int32
	best   records.Bests
}

// of returns a group, assigning a number to a new one.
func (s *groups) of(t *txn, of records.Group) (*group, error) {
	if g := s.known[of]; g != nil {
		return g, nil
	}
	if len(s.known) >= maxGroups {
		clear(s.known)
	}
	if len(s.numbers) >= maxGroups {
		clear(s.numbers)
	}
	if err := s.load(t, "sha256(name) = sha256($1)", []byte(of.Name())); err != nil {
		return nil, err
	}
	if s.known[of] == nil {
		g := &group{}
		if err := s.begin(t, of, g); err != nil {
			return nil, err
		}
		s.known[of] = g
	}
	s.numbers[of] = s.known[of].number
	return s.known[of], nil
}

// begin assigns a number to a new group.
func (s *groups) begin(t *txn, of records.Group, g *group) error {
	if s.last == 0 {
		err := t.query("SELECT greatest((SELECT max(number) FROM groups), (SELECT max(grp) FROM records), 0)", nil, []any{&s.last}, func() error { return nil })
		if err != nil {
			return err
		}
	}
	s.last++
	g.number = s.last
	t.do("INSERT INTO groups (number, name, workload, best) VALUES ($1, $2, $3, $4)", g.number, []byte(of.Name()), []byte(of.Workload), g.keys())
	return nil
}

// keys returns the keys of the best records as stored in the database.
func (g *group) keys() [][]byte {
	keys := make([][]byte, len(g.best))
	for level, best := range g.best {
		keys[level] = []byte{}
		if best.Measurement != nil {
			keys[level] = best.Key[:]
		}
	}
	return keys
}

// choose recomputes the bests of a group from its records.
func (g *group) choose(t *txn) (err error) {
	best := records.Choose(func(yield func(records.Key, *tilthv1.Measurement) bool) {
		for after := []byte{}; after != nil && err == nil; {
			var page []stored
			page, after, err = recordsAfter(t, g.number, after)
			for _, r := range page {
				if !yield(r.key, r.GetMeasurement()) {
					return
				}
			}
		}
	})
	if err == nil {
		g.best = best
	}
	return err
}

// suspectBests scans the best records of all groups; their keys contain the time of measurement.
func (t *txn) suspectBests(op records.SuspectBests) error {
	found := map[place]*tilthv1.Record{}
	var at place
	var key, message []byte
	err := t.query(`SELECT r.grp, r.key, r.message FROM groups g JOIN records r ON r.grp = g.number AND r.key = ANY(g.best)
		WHERE position($1::bytea IN r.message) > 0`, []any{[]byte(op.Device)}, []any{&at.group, &key, &message}, func() (err error) {
		r := &tilthv1.Record{}
		if at.key, err = keyOf(key); err == nil {
			err = decode(message, r)
		}
		if err == nil && r.GetMeasurement().GetDevice() == op.Device && at.key.At().After(op.Since) {
			found[at] = r
		}
		return err
	})
	if err != nil {
		return err
	}
	for at, r := range found {
		r.Measurement.Suspected = op.Reason
		t.do("UPDATE records SET message = $3 WHERE grp = $1 AND key = $2", at.group, at.key[:], records.Encode(r))
	}
	clear(t.groups.known) // the cache holds the old measurements
	return nil
}

// decode decodes a row. Anyone with write access to the database may have written it.
func decode(message []byte, into proto.Message) error {
	if err := proto.Unmarshal(message, into); err != nil {
		return fmt.Errorf("%w: a row of the database: %v", records.ErrDamaged, err)
	}
	return nil
}

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
	return s.load(t, "number = ANY($1) ORDER BY number FOR UPDATE", numbers)
}

// load reads the groups that a condition on $1 selects. Best records that are missing are left out.
func (s *groups) load(t *txn, condition string, value any) error {
	var found []*group
	var places []place
	var number int32
	var name []byte
	var best [][]byte
	err := t.query("SELECT number, name, best FROM groups WHERE "+condition, []any{value}, []any{&number, &name, &best}, func() error {
		g := &group{number: number}
		for level, key := range best[:min(len(best), len(g.best))] {
			if len(key) == 0 {
				continue
			}
			k, err := keyOf(key)
			if err != nil {
				return err
			}
			g.best[level].Key = k
			places = append(places, place{number, k})
		}
		found, s.known[records.GroupOf(name)] = append(found, g), g
		return nil
	})
	if err != nil {
		return err
	}
	stored, err := measurementsAt(t, places)
	for _, g := range found {
		for level := range g.best {
			if m := stored[place{g.number, g.best[level].Key}]; m != nil {
				g.best[level].Measurement = records.Essentials(m)
			}
		}
	}
	return err
}
