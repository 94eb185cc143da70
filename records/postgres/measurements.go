package postgres

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

const (
	// recordsPerPage and bytesPerPage bound one read of records.
	recordsPerPage = 512
	bytesPerPage   = 2 << 20
	// groupsPerPage bounds the groups read at once.
	groupsPerPage = 512
)

// recordPage selects records of a group after a key, oldest first: at most $3, stopping after $4 bytes.
const recordPage = `SELECT key, message FROM (
	SELECT *, sum(octet_length(message)) OVER (ORDER BY key) - octet_length(message) AS before
	FROM (SELECT key, message FROM records WHERE grp = $1 AND key > $2 ORDER BY key LIMIT $3) AS page
) AS summed WHERE before < $4 ORDER BY key`

// stored is a decoded record with its key.
type stored struct {
	*tilthv1.Record
	key records.Key
}

// recordsAfter returns some records of a group after a key, oldest first, without the fields that the group implies.
// next is the key to continue after, nil after the last.
func recordsAfter(from asker, group int32, after []byte) (page []stored, next []byte, err error) {
	var key, message []byte
	err = from.query(recordPage, []any{group, after, recordsPerPage, bytesPerPage}, []any{&key, &message}, func() error {
		k, err := keyOf(key)
		if err != nil {
			return err
		}
		r := &tilthv1.Record{}
		page, next = append(page, stored{r, k}), key
		return decode(message, r)
	})
	return page, next, err
}

// BestAllowed implements records.Measurements.
func (db *DB) BestAllowed(target, workloadDigest, numerics string) (record *tilthv1.Record, err error) {
	level, err := records.AllowedLevel(numerics)
	if err != nil {
		return nil, err
	}
	err = db.look(func(v *view) error {
		record, err = bestOf(v, records.Group{Target: target, Workload: workloadDigest}, level)
		return err
	})
	return record, err
}

// bestOf returns the best record of a group at a level, or ErrNotFound.
func bestOf(v *view, of records.Group, level int) (*tilthv1.Record, error) {
	var message, canonical []byte
	there, err := one(v, `SELECT r.message, w.canonical FROM groups g JOIN records r ON r.grp = g.number AND r.key = g.best[$2]
		LEFT JOIN workloads w ON w.digest = g.workload WHERE sha256(g.name) = sha256($1)`,
		[]any{[]byte(of.Name()), level + 1}, []any{&message, &canonical})
	if err == nil && !there {
		err = of.NoBest()
	}
	if err != nil {
		return nil, err
	}
	r := &tilthv1.Record{}
	err = decode(message, r)
	of.Complete(r)
	r.Workload = canonical
	return r, err
}

// BestPage implements records.Measurements.
func (db *DB) BestPage(target, after string, limit, maxBytes int) (best []*tilthv1.Record, next string, err error) {
	from, beyond := records.NamesOf(target)
	err = db.all(func(v *view) error {
		size, last := 0, ""
		for names := []byte(max(after, from)); names != nil; {
			page, following, err := bestAfter(v, names, beyond, maxBytes)
			if err != nil {
				return err
			}
			for _, r := range page {
				if size += proto.Size(r); len(best) > 0 && (len(best) == limit || size > maxBytes) {
					next = last
					return nil
				}
				best, last = append(best, r), records.Group{Target: r.GetTarget(), Workload: r.GetWorkloadDigest()}.Name()
			}
			names = following
		}
		return nil
	})
	return best, next, err
}

// groupsBetween selects groups g with names between $1 and $2; groupsOrder is their order. The index covers only
// prefixes of names, so both bounds are repeated for the prefixes. Otherwise all groups after the last would be read.
const (
	groupsBetween = `substring(g.name, 1, 1024) >= substring($1::bytea, 1, 1024) AND g.name > $1
		AND substring(g.name, 1, 1024) <= substring($2::bytea, 1, 1024) AND g.name < $2`
	groupsOrder = "substring(g.name, 1, 1024), g.name"
)

// bestPage selects the best records of groups by name: at most $3, stopping after $4 bytes.
const bestPage = `SELECT name, message, canonical FROM (
	SELECT *, sum(octet_length(message)) OVER (ORDER BY name) - octet_length(message) AS before FROM (
		SELECT g.name, r.message, w.canonical FROM groups g JOIN records r ON r.grp = g.number AND r.key = g.best[$5]
		LEFT JOIN workloads w ON w.digest = g.workload
		WHERE ` + groupsBetween + `
		ORDER BY ` + groupsOrder + ` LIMIT $3
	) AS page
) AS summed WHERE before < $4 ORDER BY name`

// bestAfter returns the best records of some groups, and the name to continue after, nil after the last.
func bestAfter(v *view, after []byte, beyond string, maxBytes int) (page []*tilthv1.Record, next []byte, err error) {
	var name, message, canonical []byte
	err = v.query(bestPage, []any{after, []byte(beyond), groupsPerPage, max(maxBytes, 1), records.Levels}, []any{&name, &message, &canonical}, func() error {
		r := &tilthv1.Record{}
		err := decode(message, r)
		records.GroupOf(name).Complete(r)
		r.Workload = canonical
		page, next = append(page, r), name
		return err
	})
	return page, next, err
}

// numbered is a group with its number.
type numbered struct {
	records.Group
	number int32
}

// eachGroup visits all matching groups; an empty target or workload matches all. No transaction stays open while visit
// runs.
func (db *DB) eachGroup(ctx context.Context, target, workload string, visit func(numbered) error) error {
	from, beyond := records.NamesOf(target)
	for after := []byte(from); after != nil; {
		var page []numbered
		err := db.view(ctx, func(v *view) (err error) {
			page, after, err = groupsAfter(v, after, beyond, workload)
			return err
		})
		if err != nil {
			return err
		}
		for _, g := range page {
			if err := visit(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupsAfter returns some groups after a name, and the name to continue after, nil after the last.
func groupsAfter(v *view, after []byte, beyond, workload string) (page []numbered, next []byte, err error) {
	var number int32
	var name []byte
	err = v.query("SELECT number, name FROM groups g WHERE "+groupsBetween+` AND ($3::bytea = '' OR workload = $3)
		ORDER BY `+groupsOrder+" LIMIT $4", []any{after, []byte(beyond), []byte(workload), groupsPerPage}, []any{&number, &name}, func() error {
		page, next = append(page, numbered{records.GroupOf(name), number}), name
		return nil
	})
	return page, next, err
}

// List implements records.Measurements.
func (db *DB) List(ctx context.Context, target, workload string, visit func(*tilthv1.Record) error) error {
	return db.eachGroup(ctx, target, workload, func(g numbered) error {
		first := true
		return db.eachRecord(ctx, g, func(r stored) error {
			if first {
				first = false
				if err := db.addWorkload(ctx, r.Record); err != nil {
					return err
				}
			}
			return visit(r.Record)
		})
	})
}

// addWorkload sets the canonical form of a record's workload.
func (db *DB) addWorkload(ctx context.Context, r *tilthv1.Record) error {
	return db.view(ctx, func(v *view) error {
		_, err := one(v, "SELECT canonical FROM workloads WHERE digest = $1", []any{[]byte(r.GetWorkloadDigest())}, []any{&r.Workload})
		return err
	})
}

// eachRecord visits the records of a group, oldest first, complete except for the workload. No transaction stays open
// while visit runs.
func (db *DB) eachRecord(ctx context.Context, g numbered, visit func(stored) error) error {
	for after := []byte{}; after != nil; {
		var page []stored
		err := db.view(ctx, func(v *view) (err error) {
			page, after, err = recordsAfter(v, g.number, after)
			return err
		})
		if err != nil {
			return err
		}
		for _, r := range page {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			g.Group.Complete(r.Record)
			if err := visit(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Known implements records.Measurements.
func (db *DB) Known(target, workloadDigest, numerics, candidate string, limit int) (known records.Known, err error) {
	level, err := records.AllowedLevel(numerics)
	if err != nil {
		return known, err
	}
	of := records.Group{Target: target, Workload: workloadDigest}
	err = db.all(func(v *view) error {
		best, err := bestOf(v, of, level)
		if err != nil && !errors.Is(err, records.ErrNotFound) {
			return err
		}
		known.Best = best.GetMeasurement()
		var group int32
		there, err := one(v, "SELECT number FROM groups WHERE sha256(name) = sha256($1)", []any{[]byte(of.Name())}, []any{&group})
		if err != nil || !there {
			return err
		}
		_, err = one(v, "SELECT count(*) FROM (SELECT FROM records WHERE grp = $1 LIMIT $2) AS newest", []any{group, limit}, []any{&known.Trials})
		if err != nil || candidate == "" {
			return err
		}
		var message []byte
		return v.query(`SELECT message FROM (SELECT key, message FROM records WHERE grp = $1 ORDER BY key DESC LIMIT $2) AS newest
			WHERE position($3::bytea IN message) > 0 ORDER BY key DESC`, []any{group, limit, []byte(candidate)}, []any{&message},
			func() error { return known.Scan(message, candidate) })
	})
	return known, err
}

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
