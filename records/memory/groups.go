package memory

import (
	"iter"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// group is the records of a workload on a target.
type group struct {
	records.Group
	rows  sorted[string, []byte] // by records.Key
	bests records.Bests
}

// groupKey orders groups by target and workload.
func groupKey(g records.Group) string { return g.Target + "\x00" + g.Workload }

// groupOf is a group, which is made when there is none. The caller holds the lock.
func (s *Store) groupOf(of records.Group) *group {
	g, there := s.groups.get(groupKey(of))
	if !there {
		g = &group{Group: of}
		s.groups.put(groupKey(of), g)
		s.size += int64(len(groupKey(of))) + rowBytes
	}
	return g
}

// stored is a record, which is decoded.
type stored struct {
	tilthv1.Record
	key records.Key
}

// record is that of a key which is there. The caller holds the lock.
func (g *group) record(key records.Key) (*stored, error) {
	row, _ := g.rows.get(string(key[:]))
	return g.decode(key, row)
}

// decode fills in what a row leaves to its group, but for the workload. It needs no lock.
func (g *group) decode(key records.Key, row []byte) (*stored, error) {
	r := &stored{key: key}
	err := decode(row, &r.Record)
	r.Target, r.WorkloadDigest = g.Target, g.Workload
	records.CutMeasurement(r.GetMeasurement())
	return r, err
}

// measurements goes through a group's records, oldest first. The caller holds the lock.
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
