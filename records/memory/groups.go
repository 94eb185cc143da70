package memory

import (
	"iter"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// group holds the records of a workload on a target.
type group struct {
	records.Group
	rows  sorted[string, []byte] // by records.Key
	bests records.Bests
}

// groupOf returns a group, creating it if necessary. The caller must hold the lock.
func (s *Store) groupOf(of records.Group) *group {
	g, there := s.groups.get(of.Name())
	if !there {
		g = &group{Group: of}
		s.groups.put(of.Name(), g)
		s.size += int64(len(of.Name())) + rowBytes
	}
	return g
}

// stored is a decoded record with its key.
type stored struct {
	tilthv1.Record
	key records.Key
}

// record returns the record of an existing key. The caller must hold the lock.
func (g *group) record(key records.Key) (*stored, error) {
	row, _ := g.rows.get(string(key[:]))
	return g.decode(key, row)
}

// decode decodes a row and adds what the group implies, except the workload. It needs no lock.
func (g *group) decode(key records.Key, row []byte) (*stored, error) {
	r := &stored{key: key}
	err := decode(row, &r.Record)
	g.Complete(&r.Record)
	return r, err
}

// measurements iterates over a group's records, oldest first. The caller must hold the lock.
func (g *group) measurements() iter.Seq2[records.Key, *tilthv1.Measurement] {
	return func(yield func(records.Key, *tilthv1.Measurement) bool) {
		for key, row := range g.rows.all() {
			r, err := g.decode(records.Key([]byte(key)), row)
			if err == nil && !yield(r.key, r.GetMeasurement()) {
				return
			}
		}
	}
}
