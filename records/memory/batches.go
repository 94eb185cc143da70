package memory

import (
	"fmt"
	"strings"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/records"
)

// OpenBatches implements records.Batches.
func (s *Store) OpenBatches() (open []*records.OpenBatch, err error) {
	err = eachRow(s, s.rows[records.RowBatch], func(id string, row []byte) error {
		b := &records.OpenBatch{ID: id, Row: &storev1.BatchRow{}}
		if err := decode(row, b.Row); err != nil {
			return err
		}
		b.Damage = s.loadCandidates(b)
		open = append(open, b)
		return nil
	})
	return open, err
}

// loadCandidates loads the proposed candidates. It returns ErrDamaged if the event of the proposal is missing.
func (s *Store) loadCandidates(b *records.OpenBatch) error {
	s.mu.RLock()
	var proposed event
	if j, there := s.jobs.get(b.Row.GetJobId()); there {
		proposed, _ = j.events.get(b.Row.GetEventSequence())
	}
	s.mu.RUnlock()
	if proposed.row == nil {
		return fmt.Errorf("candidates of batch %s: %w: their event is missing", b.ID, records.ErrDamaged)
	}
	var row storev1.EventRow
	err := decode(proposed.row, &row)
	b.Take(row.GetEvent().GetProposed())
	return err
}

// DeadBatch implements records.Batches.
func (s *Store) DeadBatch(id string) (*records.OpenBatch, error) {
	row, err := s.ClosedBatch(id)
	b := &records.OpenBatch{ID: id, Row: row}
	if err != nil {
		return b, err
	}
	if row.GetStage() != storev1.Stage_STAGE_DEAD {
		return b, fmt.Errorf("dead letter %q: %w", id, records.ErrNotFound)
	}
	return b, s.loadCandidates(b)
}

// ClosedBatch implements records.Batches.
func (s *Store) ClosedBatch(id string) (*storev1.BatchRow, error) {
	s.mu.RLock()
	stored, there := s.rows[records.RowClosed].get(id)
	s.mu.RUnlock()
	row := &storev1.BatchRow{}
	if !there {
		return row, fmt.Errorf("closed batch %q: %w", id, records.ErrNotFound)
	}
	return row, decode(stored, row)
}

// ClosedProposal implements records.Batches.
func (s *Store) ClosedProposal(begin string) (id string, row *storev1.BatchRow, err error) {
	row = &storev1.BatchRow{}
	stored, id, _ := s.closedFrom(begin)
	if id != begin && !strings.HasPrefix(id, begin+"-") {
		return id, row, fmt.Errorf("closed batch %q: %w", begin, records.ErrNotFound)
	}
	return id, row, decode(stored, row)
}

// ClosedJobs implements records.Batches.
func (s *Store) ClosedJobs() (ids []string, proposals []uint64, err error) {
	for from := ""; ; {
		batch, id, there := s.closedFrom(from)
		if !there {
			return ids, proposals, nil
		}
		var closed storev1.BatchRow
		var row storev1.JobRow
		err := decode(batch, &closed)
		if err == nil {
			err = decode(s.rowOf(closed.GetJobId()), &row)
		}
		if err != nil {
			return nil, nil, err
		}
		ids, proposals = append(ids, closed.GetJobId()), append(proposals, row.GetProposals())
		// Ids of a job's batches start with its id and '.'; '/' is the next character.
		from = max(closed.GetJobId()+"/", id+"\x00")
	}
}

func (s *Store) closedFrom(from string) (row []byte, id string, there bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for id, row := range s.rows[records.RowClosed].from(from) {
		return row, id, true
	}
	return nil, "", false
}

// rowOf returns the row of a job, or nil.
func (s *Store) rowOf(id string) (row []byte) {
	_ = s.look(id, func(j *job) { row = j.row })
	return row
}
