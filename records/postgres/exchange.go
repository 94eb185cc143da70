package postgres

import (
	"context"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// GroupPage implements records.Measurements.
func (db *DB) GroupPage(target, after string, limit int) (groups []records.Group, next string, err error) {
	from, beyond := records.NamesOf(target)
	var name []byte
	last := ""
	err = db.all(func(v *view) error {
		return v.query("SELECT name FROM groups g WHERE "+groupsBetween+` AND EXISTS (SELECT FROM records r WHERE r.grp = g.number)
			ORDER BY `+groupsOrder+" LIMIT $3", []any{[]byte(max(after, from)), []byte(beyond), limit + 1}, []any{&name}, func() error {
			if len(groups) == limit {
				next = last
				return nil
			}
			groups, last = append(groups, records.GroupOf(name)), string(name)
			return nil
		})
	})
	return groups, next, err
}

// KeyPage implements records.Measurements.
func (db *DB) KeyPage(of records.Group, from records.Key, limit int) (keys []records.Key, err error) {
	var key []byte
	err = db.all(func(v *view) error {
		return v.query(`SELECT r.key FROM groups g JOIN records r ON r.grp = g.number
			WHERE sha256(g.name) = sha256($1) AND r.key >= $2 ORDER BY r.key LIMIT $3`, []any{[]byte(of.Name()), from[:], limit}, []any{&key}, func() error {
			k, err := keyOf(key)
			keys = append(keys, k)
			return err
		})
	})
	return keys, err
}

// recordsPerView bounds the rows read at once. A row may have some megabytes.
const recordsPerView = 64

// RecordsOf implements records.Measurements.
func (db *DB) RecordsOf(of records.Group, keys []records.Key, maxBytes int) (found []*tilthv1.Record, looked int, err error) {
	for size := 0; looked < len(keys) && (looked == 0 || size < maxBytes); {
		var page [][]byte
		for _, key := range keys[looked:min(looked+recordsPerView, len(keys))] {
			page = append(page, key[:])
		}
		var message []byte
		err := db.all(func(v *view) error {
			return v.query(`SELECT r.message FROM groups g JOIN records r ON r.grp = g.number
				WHERE sha256(g.name) = sha256($1) AND r.key = ANY($2) ORDER BY r.key`, []any{[]byte(of.Name()), page}, []any{&message}, func() error {
				r := &tilthv1.Record{}
				err := decode(message, r)
				of.Complete(r)
				found, size = append(found, r), size+proto.Size(r)
				return err
			})
		})
		if err != nil {
			return nil, 0, err
		}
		looked += len(page)
	}
	if len(found) > 0 {
		err = db.addWorkload(context.Background(), found[0])
	}
	return found, looked, err
}
