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

// groupKey sorts groups by target, then by workload.
func groupKey(g records.Group) string { return g.Target + "\x00" + g.Workload }

// groupOf returns a group, creating it if necessary. The caller must hold the lock.
func (s *Store) groupOf(of records.Group) *group {
	g, there := s.groups.get(groupKey(of))
	if !there {
		g = &group{Group: of}
		s.groups.put(groupKey(of), g)
		s.size += int64(len(groupKey(of))) + rowBytes
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
	r.Target, r.WorkloadDigest = g.Target, g.Workload
	records.CutMeasurement(r.GetMeasurement())
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
