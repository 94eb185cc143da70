package records

import (
	"bytes"
	"encoding/binary"

	"go.etcd.io/bbolt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// txn is a transaction of the writer, with what it remembers from those before.
type txn struct {
	*bbolt.Tx
	standings *standings
}

// standings is the writer's memory of groups, so that a record costs no look-up of the best before it. Only the writer changes
// groups and best records, and when one of its transactions fails it never writes again.
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
func (s *standings) of(tx *bbolt.Tx, group []byte) (*standing, error) {
	if st := s.byGroup[string(group)]; st != nil {
		return st, nil
	}
	number, err := groupNumber(tx, group)
	if err != nil {
		return nil, err
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
	if len(s.byGroup) >= mostStandings {
		clear(s.byGroup)
	}
	s.byGroup[string(group)] = st
	return st, nil
}

// groupNumber returns the number of a (target, workload) pair, and gives it one when it is new.
func groupNumber(tx *bbolt.Tx, group []byte) ([]byte, error) {
	b := tx.Bucket(bucketGroups)
	if number := b.Get(group); number != nil {
		return number, nil
	}
	next, err := b.NextSequence()
	if err != nil {
		return nil, err
	}
	number := binary.BigEndian.AppendUint32(nil, uint32(next))
	return number, b.Put(group, number)
}

// keep makes a verified record the best of its group for every level that allows it and whose best so far it supersedes; of equals
// the earlier stays.
func (st *standing) keep(tx *bbolt.Tx, key []byte, m *tilthv1.Measurement) error {
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

// write stores all levels: what they shared may have been replaced for some of them.
func (st *standing) write(tx *bbolt.Tx) error {
	bucket := tx.Bucket(bucketBest)
	for level, best := range st.best {
		var err error
		if best.key == nil {
			err = bucket.Delete(bestKey(st.number, level))
		} else {
			err = bucket.Put(bestKey(st.number, level), best.key)
		}
		if err != nil {
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
