package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// groups is the writer's cache of groups, which saves a look-up of the best for each record. Only the writer changes
// groups and best records, and after a failed transaction it never writes again, so the cache cannot be stale.
type groups struct{ known map[records.Group]*group }

// maxGroups bounds the cache. A group takes less than a kilobyte.
const maxGroups = 1 << 15

// group is a group's number in keys, and its best records.
type group struct {
	number []byte
	bests  records.Bests
}

// of returns a group, assigning a number to a new one.
func (s *groups) of(tx *txn, of records.Group) (*group, error) {
	if g := s.known[of]; g != nil {
		return g, nil
	}
	number := tx.groupNumber([]byte(of.Name()))
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

// bestsOf returns the best records of a group.
func bestsOf(tx *txn, number []byte) (bests records.Bests, err error) {
	for level := range bests {
		key, r, err := bestAllowed(tx, number, level)
		if err != nil {
			return bests, err
		}
		if key != nil {
			bests[level] = records.Best{Key: withinGroup(key), Measurement: records.Essentials(r.GetMeasurement())}
		}
	}
	return bests, nil
}

// begin creates a group with a new number and empty best rows.
func (s *groups) begin(tx *txn, of records.Group) (*group, error) {
	rows := tx.table(bucketGroups)
	next, err := rows.bucket.NextSequence()
	if err != nil {
		return nil, err
	}
	g := &group{number: binary.BigEndian.AppendUint32(nil, uint32(next))}
	s.keep(of, g)
	return g, errors.Join(rows.put([]byte(of.Name()), slices.Clone(g.number)), g.write(tx))
}

// keep caches a group.
func (s *groups) keep(of records.Group, g *group) {
	if len(s.known) >= maxGroups {
		clear(s.known)
	}
	s.known[of] = g
}

// numbered returns the group with a number, cached or not.
func (s *groups) numbered(number []byte) *group {
	for _, g := range s.known {
		if bytes.Equal(g.number, number) {
			return g
		}
	}
	return &group{number: number}
}

// write stores the bests of all levels, since a change may affect several. The row of a level without a record is
// empty.
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

// chooseAgain recomputes the bests of a group from its records and stores them.
func (g *group) chooseAgain(tx *txn) error {
	if err := g.choose(tx); err != nil {
		return err
	}
	return g.write(tx)
}

// choose recomputes the bests of a group without storing them.
func (g *group) choose(tx *txn) (err error) {
	bests := records.Choose(func(yield func(records.Key, *tilthv1.Measurement) bool) {
		if err == nil {
			err = eachRecord(tx, g.number, yield)
		}
	})
	if err == nil {
		g.bests = bests
	}
	return err
}

// eachRecord visits a group's records, oldest first, until visit returns false.
func eachRecord(tx *txn, number []byte, visit func(records.Key, *tilthv1.Measurement) bool) error {
	rows := tx.table(bucketRecords)
	c := rows.cursor()
	for k, v := c.Seek(number); bytes.HasPrefix(k, number); k, v = c.Next() {
		r := &tilthv1.Record{}
		if err := rows.read(k, v, r); err != nil {
			if tx.skipDamage(err) {
				continue
			}
			return err
		}
		if !visit(withinGroup(k), r.GetMeasurement()) {
			return nil
		}
	}
	return nil
}

// suspectBests scans the best records of all workloads; their keys contain the time of measurement.
func (tx *txn) suspectBests(op records.SuspectBests) error {
	var keys [][]byte
	err := tx.table(bucketBest).each(func(_, key []byte, err error) error {
		if !tx.skipDamage(err) && len(key) == recordKeyBytes && withinGroup(key).At().After(op.Since) {
			keys = append(keys, bytes.Clone(key)) // writing may move it
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := tx.suspect(key, op.Device, op.Reason); err != nil {
			return err
		}
	}
	return nil
}

// suspect marks a record if the device measured it.
func (tx *txn) suspect(key []byte, device, reason string) error {
	rows, r := tx.table(bucketRecords), &tilthv1.Record{}
	if err := rows.load(key, r); err != nil {
		return tx.unlessDamage(err)
	}
	if r.GetMeasurement().GetDevice() != device {
		return nil
	}
	r.Measurement.Suspected = reason
	clear(tx.groups.known) // the cache holds the old measurement
	return rows.put(key, records.Encode(r))
}

// GroupPage implements records.Measurements.
func (db *DB) GroupPage(target, after string, limit int) (groups []records.Group, next string, err error) {
	from, beyond := records.NamesOf(target)
	err = db.view(func(tx *txn) error {
		rows, looked := tx.table(bucketGroups), 0
		c, all := rows.cursor(), tx.table(bucketRecords).cursor()
		key, stored := c.Seek([]byte(max(from, after)))
		if after != "" && string(key) == after {
			key, stored = c.Next()
		}
		for ; key != nil && string(key) < beyond; key, stored = c.Next() {
			if looked == limit {
				return nil
			}
			looked, next = looked+1, string(key)
			number, err := rows.open(key, stored)
			if tx.skipDamage(err) {
				continue
			}
			if first, _ := all.Seek(number); first != nil && bytes.HasPrefix(first, number) {
				groups = append(groups, records.GroupOf(key))
			}
		}
		next = ""
		return nil
	})
	return groups, next, err
}

// KeyPage implements records.Measurements.
func (db *DB) KeyPage(of records.Group, from records.Key, limit int) (keys []records.Key, err error) {
	err = db.view(func(tx *txn) error {
		number := tx.groupNumber([]byte(of.Name()))
		if number == nil {
			return nil
		}
		all := tx.table(bucketRecords)
		c := all.cursor()
		for k, v := c.Seek(recordKey(number, from)); bytes.HasPrefix(k, number) && len(keys) < limit; k, v = c.Next() {
			if _, err := all.open(k, v); tx.skipDamage(err) {
				continue // so that another side may send it again
			}
			keys = append(keys, withinGroup(k))
		}
		return nil
	})
	return keys, err
}

// RecordsOf implements records.Measurements.
func (db *DB) RecordsOf(of records.Group, keys []records.Key, maxBytes int) (found []*tilthv1.Record, looked int, err error) {
	group := []byte(of.Name())
	err = db.view(func(tx *txn) error {
		number := tx.groupNumber(group)
		all := tx.table(bucketRecords)
		for size := 0; looked < len(keys) && (looked == 0 || size < maxBytes); looked++ {
			key := recordKey(number, keys[looked])
			if number == nil || !all.has(key) {
				continue
			}
			r := &tilthv1.Record{}
			if err := all.load(key, r); tx.skipDamage(err) {
				continue
			}
			complete(tx, r, group, len(found) == 0)
			found, size = append(found, r), size+proto.Size(r)
		}
		return nil
	})
	return found, looked, err
}
