package postgres

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// groups is the writer's cache of groups, which saves a look-up of the best for each record. It is dropped when a
// transaction fails, and refreshed by share if other processes may have changed groups.
type groups struct {
	known map[records.Group]*group
	last  int32 // largest number used by groups or by records of lost groups; 0 if unknown
	// numbers caches the numbers of existing groups, even those not in known; see common.go.
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
	g := &group{}
	var keys [][]byte
	err := t.query("SELECT number, best FROM groups WHERE sha256(name) = sha256($1)", []any{[]byte(of.Name())}, []any{&g.number, &keys},
		func() error { return nil })
	switch {
	case err != nil:
		return nil, err
	case g.number == 0:
		err = s.begin(t, of, g)
	default:
		err = g.read(t, keys)
	}
	if err != nil {
		return nil, err
	}
	if len(s.known) >= maxGroups {
		clear(s.known)
	}
	if len(s.numbers) >= maxGroups {
		clear(s.numbers)
	}
	s.known[of], s.numbers[of] = g, g.number
	return g, nil
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

// read loads the best records by their keys at each level.
func (g *group) read(t *txn, keys [][]byte) error {
	stored := map[string]*tilthv1.Measurement{}
	var key, message []byte
	err := t.query("SELECT key, message FROM records WHERE grp = $1 AND key = ANY($2)", []any{g.number, keys}, []any{&key, &message}, func() error {
		r := &tilthv1.Record{}
		err := decode(message, r)
		stored[string(key)] = records.Essentials(r.GetMeasurement())
		return err
	})
	if err != nil {
		return err
	}
	return g.take(keys, func(k records.Key) *tilthv1.Measurement { return stored[string(k[:])] })
}

// take sets the best records by their keys at each level; missing records are left out.
func (g *group) take(keys [][]byte, stored func(records.Key) *tilthv1.Measurement) error {
	for level, key := range keys[:min(len(keys), len(g.best))] {
		if len(key) == 0 {
			continue
		}
		k, err := keyOf(key)
		if err != nil {
			return err
		}
		if m := stored(k); m != nil {
			g.best[level] = records.Best{Key: k, Measurement: m}
		}
	}
	return nil
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
