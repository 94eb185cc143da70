package records

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// standings is the writer's memory of groups, so that a record costs no look-up of the best before it. Only the writer
// changes groups and best records, and when one of its transactions fails it never writes again.
type standings struct{ byGroup map[string]*standing }

// mostStandings bounds the memory: a standing has less than a kilobyte.
const mostStandings = 1 << 15

func newStandings() *standings { return &standings{byGroup: map[string]*standing{}} }

// standing is a group's number and, for each level of numerics, the best record that it allows.
type standing struct {
	number []byte
	best   [levelCount]held
}

// held is a best record: its key, nil when there is none, and what comparing it needs of its measurement.
type held struct {
	key         []byte
	measurement *tilthv1.Measurement
}

// of returns the standing of a group, which gets a number when it is new.
func (s *standings) of(tx *txn, group []byte) (*standing, error) {
	if st := s.byGroup[string(group)]; st != nil {
		return st, nil
	}
	number := tx.groupNumber(group)
	if number == nil {
		return s.begin(tx, group)
	}
	st := &standing{number: bytes.Clone(number)}
	for level := range st.best {
		key, r, err := bestAllowed(tx, number, level)
		if err != nil {
			return nil, err
		}
		if key != nil {
			st.best[level] = held{key: bytes.Clone(key), measurement: gist(r.GetMeasurement())}
		}
	}
	s.keep(group, st)
	return st, nil
}

// begin gives a group that is new its number, and rows that say that it has no best record.
func (s *standings) begin(tx *txn, group []byte) (*standing, error) {
	groups := tx.table(bucketGroups)
	next, err := groups.bucket.NextSequence()
	if err != nil {
		return nil, err
	}
	st := &standing{number: binary.BigEndian.AppendUint32(nil, uint32(next))}
	s.keep(group, st)
	return st, errors.Join(groups.put(group, slices.Clone(st.number)), st.write(tx))
}

// keep remembers a standing.
func (s *standings) keep(group []byte, st *standing) {
	if len(s.byGroup) >= mostStandings {
		clear(s.byGroup)
	}
	s.byGroup[string(group)] = st
}

// numbered is the standing of the group with a number, remembered or not.
func (s *standings) numbered(number []byte) *standing {
	for _, st := range s.byGroup {
		if bytes.Equal(st.number, number) {
			return st
		}
	}
	return &standing{number: number}
}

// keep makes a verified record the best of its group for every level that allows it and whose best so far it
// supersedes; of equals the earlier stays.
func (st *standing) keep(tx *txn, key []byte, m *tilthv1.Measurement) error {
	if !st.offer(key, m) {
		return nil
	}
	return st.write(tx)
}

// offer is keep but for the store, and says whether anything changed.
func (st *standing) offer(key []byte, m *tilthv1.Measurement) (changed bool) {
	needs, ok := numericsLevel(m.GetCandidate().GetNumerics())
	if !ok {
		return false
	}
	for level := needs; level < levelCount; level++ {
		if best := &st.best[level]; best.key == nil || Supersedes(m, best.measurement) {
			*best = held{key: key, measurement: gist(m)}
			changed = true
		}
	}
	return changed
}

// write stores all levels: what they shared may have been replaced for some of them. The row of a level without a
// record is empty.
func (st *standing) write(tx *txn) error {
	rows := tx.table(bucketBest)
	for level, best := range st.best {
		if err := rows.put(bestKey(st.number, level), slices.Clip(best.key)); err != nil {
			return err
		}
	}
	return nil
}

// gist is what Supersedes and the look-up of levels need of a measurement.
func gist(m *tilthv1.Measurement) *tilthv1.Measurement {
	return &tilthv1.Measurement{
		Candidate:      &tilthv1.Candidate{Digest: m.GetCandidate().GetDigest(), Numerics: m.GetCandidate().GetNumerics()},
		Error:          m.GetError(),
		LatencySeconds: m.GetLatencySeconds(), SamplesSeconds: m.GetSamplesSeconds(), CalibrationRatio: m.GetCalibrationRatio(),
		Device: m.GetDevice(), At: m.GetAt(), Remeasured: m.GetRemeasured(), Suspected: m.GetSuspected(),
	}
}
