package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/tilth-dev/tilth/records"
)

// groups is the writer's memory of groups, so that a record costs no look-up of the best before it. Only the writer
// changes groups and best records, and when one of its transactions fails it never writes again.
type groups struct{ known map[records.Group]*group }

// mostGroups bounds the memory: a group has less than a kilobyte.
const mostGroups = 1 << 15

func newGroups() *groups { return &groups{known: map[records.Group]*group{}} }

// group is the number that stands for a group in keys, and its best records.
type group struct {
	number []byte
	bests  records.Bests
}

// of returns a group, which gets a number when it is new.
func (s *groups) of(tx *txn, of records.Group) (*group, error) {
	if g := s.known[of]; g != nil {
		return g, nil
	}
	number := tx.groupNumber(groupKey(of.Target, of.Workload))
	if number == nil {
		return s.begin(tx, of)
	}
	bests, err := bestsOf(tx, number)
	if err != nil {
		return nil, err
	}
	g := &group{number: bytes.Clone(number), bests: bests}
	s.keep(of, g)
	return g, nil
}

// bestsOf are the best records of the group with a number.
func bestsOf(tx *txn, number []byte) (bests records.Bests, err error) {
	for level := range bests {
		key, r, err := bestAllowed(tx, number, level)
		if err != nil {
			return bests, err
		}
		if key != nil {
			bests[level] = records.Best{Key: withinGroup(key), Measurement: records.Gist(r.GetMeasurement())}
		}
	}
	return bests, nil
}

// begin gives a group that is new its number, and rows that say that it has no best record.
func (s *groups) begin(tx *txn, of records.Group) (*group, error) {
	rows := tx.table(bucketGroups)
	next, err := rows.bucket.NextSequence()
	if err != nil {
		return nil, err
	}
	g := &group{number: binary.BigEndian.AppendUint32(nil, uint32(next))}
	s.keep(of, g)
	return g, errors.Join(rows.put(groupKey(of.Target, of.Workload), slices.Clone(g.number)), g.write(tx))
}

// keep remembers a group.
func (s *groups) keep(of records.Group, g *group) {
	if len(s.known) >= mostGroups {
		clear(s.known)
	}
	s.known[of] = g
}

// numbered is the group with a number, remembered or not.
func (s *groups) numbered(number []byte) *group {
	for _, g := range s.known {
		if bytes.Equal(g.number, number) {
			return g
		}
	}
	return &group{number: number}
}

// write stores the best at all levels: what they shared may have been replaced for some of them. The row of a level
// without a record is empty.
func (g *group) write(tx *txn) error {
	rows := tx.table(bucketBest)
	for level, best := range g.bests {
		var row []byte
		if best.Measurement != nil {
			row = recordKey(g.number, best.Key)
		}
		if err := rows.put(bestKey(g.number, level), row); err != nil {
			return err
		}
	}
	return nil
}
