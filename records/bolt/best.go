package bolt

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// BestPage implements records.Measurements.
func (db *DB) BestPage(target, after string, limit, maxBytes int) (best []*tilthv1.Record, next string, err error) {
	from, beyond := records.NamesOf(target)
	err = db.view(func(tx *txn) error {
		last, size := "", 0
		groups := tx.table(bucketGroups)
		c := groups.cursor()
		group, stored := c.Seek([]byte(max(from, after)))
		if after != "" && string(group) == after {
			group, stored = c.Next()
		}
		for ; group != nil && string(group) < beyond; group, stored = c.Next() {
			if _, err := groups.open(group, stored); tx.skipDamage(err) {
				continue
			}
			record, err := bestOf(tx, group, records.Levels-1)
			if errors.Is(err, records.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if size += proto.Size(record); len(best) > 0 && (len(best) == limit || size > maxBytes) {
				next = last
				return nil
			}
			best, last = append(best, record), string(group)
		}
		return nil
	})
	return best, next, err
}

func bestOf(tx *txn, group []byte, level int) (*tilthv1.Record, error) {
	var record *tilthv1.Record
	if number := tx.groupNumber(group); number != nil {
		var err error
		if _, record, err = bestAllowed(tx, number, level); err != nil {
			return nil, err
		}
	}
	if record == nil {
		return nil, records.GroupOf(group).NoBest()
	}
	complete(tx, record, group, true)
	return record, nil
}

// complete fills in the fields of a stored record that its key implies.
func complete(tx *txn, r *tilthv1.Record, group []byte, withWorkload bool) {
	records.GroupOf(group).Complete(r)
	if withWorkload {
		canonical, err := tx.table(bucketWorkloads).get([]byte(r.GetWorkloadDigest()))
		tx.skipDamage(err)
		r.Workload = bytes.Clone(canonical)
	}
}

// groupNumber returns the number of a group, or nil.
func (tx *txn) groupNumber(group []byte) []byte {
	number, err := tx.table(bucketGroups).get(group)
	tx.skipDamage(err)
	return number
}

// eachGroup visits the keys of all groups that match, as defined by records.NamesOf; an empty workload matches all.
func eachGroup(tx *txn, target, workload string, visit func(group []byte) error) error {
	from, beyond := records.NamesOf(target)
	if workload != "" && strings.HasSuffix(from, "\x00") { // a single group
		from += workload
		beyond = from + "\x00"
	}
	groups := tx.table(bucketGroups)
	c := groups.cursor()
	for group, stored := c.Seek([]byte(from)); group != nil && string(group) < beyond; group, stored = c.Next() {
		if _, err := groups.open(group, stored); tx.skipDamage(err) {
			continue
		}
		if _, digest, _ := bytes.Cut(group, []byte{0}); workload != "" && string(digest) != workload {
			continue
		}
		if err := visit(group); err != nil {
			return err
		}
	}
	return nil
}

// groupsOf returns the keys of all groups that match; see eachGroup.
func (db *DB) groupsOf(target, workload string) (groups [][]byte, err error) {
	err = db.view(func(tx *txn) error {
		return eachGroup(tx, target, workload, func(group []byte) error {
			groups = append(groups, bytes.Clone(group))
			return nil
		})
	})
	return groups, err
}

// A read transaction reads at most recordsPerView records, and stops after bytesPerView.
const (
	recordsPerView = 512
	bytesPerView   = 2 << 20
)

// List implements records.Measurements. No read transaction stays open while visit runs.
func (db *DB) List(ctx context.Context, target, workload string, visit func(*tilthv1.Record) error) error {
	groups, err := db.groupsOf(target, workload)
	if err != nil {
		return err
	}
	for _, group := range groups {
		if err := db.listGroup(ctx, group, visit); err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) listGroup(ctx context.Context, group []byte, visit func(*tilthv1.Record) error) error {
	first := true
	return db.eachPage(ctx, group, func(_ []byte, r *tilthv1.Record) error {
		if first {
			first = false
			if err := db.view(func(tx *txn) error {
				complete(tx, r, group, true)
				return nil
			}); err != nil {
				return err
			}
		}
		return visit(r)
	})
}

// eachPage visits the records of a group with their keys, oldest first, complete except for the workload. No read
// transaction stays open while visit runs.
func (db *DB) eachPage(ctx context.Context, group []byte, visit func(key []byte, r *tilthv1.Record) error) error {
	for from := []byte(nil); ; {
		p, err := db.groupPage(group, from)
		if err != nil {
			return err
		}
		db.touch(p.sizeBytes)
		for i, r := range p.records {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if err := visit(p.keys[i], r); err != nil {
				return err
			}
		}
		if p.next == nil {
			return nil
		}
		from = p.next
	}
}

// page holds some records of a group.
type page struct {
	keys      [][]byte
	records   []*tilthv1.Record
	sizeBytes int64
	next      []byte // start of the next page; nil after the last
}

// groupPage returns some records of a group from a key on (nil for the first).
func (db *DB) groupPage(group, from []byte) (p page, err error) {
	err = db.view(func(tx *txn) error {
		number := tx.groupNumber(group)
		if number == nil {
			return nil
		}
		if from == nil {
			from = number
		}
		all := tx.table(bucketRecords)
		c := all.cursor()
		for k, v := c.Seek(from); bytes.HasPrefix(k, number); k, v = c.Next() {
			if len(p.records) == recordsPerView || p.sizeBytes > bytesPerView {
				p.next = bytes.Clone(k)
				return nil
			}
			r := &tilthv1.Record{}
			if err := all.read(k, v, r); err != nil {
				if tx.skipDamage(err) {
					continue
				}
				return err
			}
			complete(tx, r, group, false)
			p.keys, p.records = append(p.keys, bytes.Clone(k)), append(p.records, r)
			p.sizeBytes += int64(len(v))
		}
		return nil
	})
	return p, err
}

// Known implements records.Measurements. It decodes only few of the records.
func (db *DB) Known(target, workloadDigest, numerics, candidate string, limit int) (known records.Known, err error) {
	level, err := records.AllowedLevel(numerics)
	if err != nil {
		return known, err
	}
	group := []byte(records.Group{Target: target, Workload: workloadDigest}.Name())
	var read int64
	defer func() { db.touch(read) }()
	err = db.view(func(tx *txn) error {
		best, err := bestOf(tx, group, level)
		if err == nil {
			known.Best = best.GetMeasurement()
		} else if !errors.Is(err, records.ErrNotFound) {
			return err
		}
		number := tx.groupNumber(group)
		if number == nil {
			return nil
		}
		rows := tx.table(bucketRecords)
		c := rows.cursor()
		for k, v := lastBefore(c, following(number)); bytes.HasPrefix(k, number) && known.Trials < limit; k, v = c.Prev() {
			read += int64(len(v))
			value, err := rows.open(k, v)
			if tx.skipDamage(err) {
				continue
			}
			known.Trials++
			if err := known.Scan(value, candidate); err != nil && !tx.skipDamage(damagedValue(bucketRecords, k, err)) {
				return err
			}
		}
		return nil
	})
	return known, err
}

// lastBefore moves to the last key less than bound; nil is no bound.
func lastBefore(c *bbolt.Cursor, bound []byte) (key, value []byte) {
	if bound != nil {
		if k, _ := c.Seek(bound); k != nil {
			return c.Prev()
		}
	}
	return c.Last()
}

// following returns the least key greater than all keys with a prefix, or nil.
func following(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			next := bytes.Clone(prefix[:i+1])
			next[i]++
			return next
		}
	}
	return nil
}

// bestKey returns the key of a group's best record in bucket best: the group's number and the level. The last level,
// which allows everything, is omitted.
func bestKey(group []byte, level int) []byte {
	if level == records.Levels-1 {
		return group
	}
	return append(bytes.Clone(group), byte(level))
}

// bestAllowed returns the best verified record that a level allows with its key, or nil. Every group has a row for
// each level. If that row or its record is damaged or missing, the best is computed from the group's records.
func bestAllowed(tx *txn, number []byte, level int) (key []byte, r *tilthv1.Record, err error) {
	key, r, err = storedBest(tx, bestKey(number, level))
	if !tx.skipDamage(err) {
		return key, r, err
	}
	// The records determine the result even if the row or its record is damaged.
	stored := bytes.Clone(number)
	tx.db.later(func(tx *txn) error { return tx.choosePast(stored) })
	g := &group{number: number}
	if err := g.choose(tx); err != nil || g.bests[level].Measurement == nil {
		return nil, nil, err
	}
	r = &tilthv1.Record{}
	key = recordKey(number, g.bests[level].Key)
	return key, r, tx.table(bucketRecords).load(key, r)
}

// storedBest returns the record that a row of bucket best refers to; nil if the row is empty.
func storedBest(tx *txn, row []byte) (key []byte, r *tilthv1.Record, err error) {
	best := tx.table(bucketBest)
	key, err = best.get(row)
	if err == nil && key == nil {
		err = damagedRow(bucketBest, row, errMissingRow)
	}
	if err != nil || len(key) == 0 {
		return nil, nil, err
	}
	r = &tilthv1.Record{}
	return key, r, tx.table(bucketRecords).load(key, r)
}

// BestAllowed implements records.Measurements.
func (db *DB) BestAllowed(target, workloadDigest, numerics string) (record *tilthv1.Record, err error) {
	level, err := records.AllowedLevel(numerics)
	if err != nil {
		return nil, err
	}
	err = db.view(func(tx *txn) error {
		record, err = bestOf(tx, []byte(records.Group{Target: target, Workload: workloadDigest}.Name()), level)
		return err
	})
	return record, err
}
