package memory

import (
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Events implements records.Jobs.
func (s *Store) Events(jobID string, from uint64, limit int) (events []*tilthv1.JobEvent, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	j, there := s.jobs.get(jobID)
	if !there {
		return nil, nil
	}
	p := records.EventPage{From: from, Limit: limit}
	for _, stored := range j.events.from(from) {
		if p.Full() {
			break
		}
		var row storev1.EventRow
		if err := decode(stored.row, &row); err != nil {
			return nil, err
		}
		if err := p.Add(&row, stored.measurement); err != nil {
			return nil, err
		}
	}
	return p.Events, nil
}

// measurement fetches the measurement of a trial, or nil if its record was pruned. The caller must hold the lock.
func (e event) measurement(key []byte) (*tilthv1.Measurement, error) {
	if e.group == nil {
		return nil, nil
	}
	row, there := e.group.rows.get(string(key))
	if !there {
		return nil, nil
	}
	var r tilthv1.Record
	err := decode(row, &r)
	return r.GetMeasurement(), err
}
