package postgres

import (
	"errors"
	"fmt"
	"strings"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/records"
)

// isDamage says whether an error is of one job or batch alone, which is not as it was stored.
func isDamage(err error) bool {
	return errors.Is(err, records.ErrDamaged) || errors.Is(err, records.ErrNotFound)
}

// OpenBatches implements records.Batches.
func (db *DB) OpenBatches() (open []*records.OpenBatch, err error) {
	err = db.all(func(v *view) error {
		var id, message []byte
		err := v.query("SELECT id, message FROM batches WHERE shard = $1 ORDER BY id", []any{db.shard}, []any{&id, &message}, func() error {
			b := &records.OpenBatch{ID: string(id), Row: &storev1.BatchRow{}}
			b.Damage = decode(message, b.Row)
			open = append(open, b)
			return nil
		})
		for _, b := range open {
			if err == nil && b.Damage == nil {
				b.Damage = loadCandidates(v, b)
			}
			if b.Damage != nil && !isDamage(b.Damage) {
				return b.Damage
			}
		}
		return err
	})
	return open, err
}

// loadCandidates reads what was proposed. ErrDamaged where the event is missing that says it.
func loadCandidates(v *view, b *records.OpenBatch) error {
	var message []byte
	there, err := one(v, "SELECT message FROM events WHERE job = $1 AND sequence = $2",
		[]any{[]byte(b.Row.GetJobId()), int64(b.Row.GetEventSequence())}, []any{&message})
	if err == nil && !there {
		err = fmt.Errorf("candidates of batch %s: %w: their event is missing", b.ID, records.ErrDamaged)
	}
	if err != nil {
		return err
	}
	var row storev1.EventRow
	err = decode(message, &row)
	b.Candidates = row.GetEvent().GetProposed().GetCandidates()
	return err
}

// DeadBatch implements records.Batches.
func (db *DB) DeadBatch(id string) (*records.OpenBatch, error) {
	b := &records.OpenBatch{ID: id, Row: &storev1.BatchRow{}}
	return b, db.look(func(v *view) error {
		if err := lookUp(v, "closed_batches", id, b.Row); err != nil {
			return err
		}
		if b.Row.GetStage() != storev1.Stage_STAGE_DEAD {
			return fmt.Errorf("dead letter %q: %w", id, records.ErrNotFound)
		}
		return loadCandidates(v, b)
	})
}

// ClosedBatch implements records.Batches.
func (db *DB) ClosedBatch(id string) (*storev1.BatchRow, error) {
	row := &storev1.BatchRow{}
	return row, db.look(func(v *view) error { return lookUp(v, "closed_batches", id, row) })
}

// closedFrom is the first closed batch from an id on; there says whether there is one.
func closedFrom(v *view, from string, row *storev1.BatchRow) (id string, there bool, err error) {
	var found, message []byte
	there, err = one(v, "SELECT id, message FROM closed_batches WHERE id >= $1 ORDER BY id LIMIT 1", []any{[]byte(from)}, []any{&found, &message})
	if err == nil && there {
		err = decode(message, row)
	}
	return string(found), there, err
}

// ClosedProposal implements records.Batches.
func (db *DB) ClosedProposal(begin string) (id string, row *storev1.BatchRow, err error) {
	row = &storev1.BatchRow{}
	err = db.look(func(v *view) error {
		var there bool
		id, there, err = closedFrom(v, begin, row)
		if err == nil && (!there || id != begin && !strings.HasPrefix(id, begin+"-")) {
			err = fmt.Errorf("closed batch %q: %w", begin, records.ErrNotFound)
		}
		return err
	})
	return id, row, err
}

// ClosedJobs implements records.Batches.
func (db *DB) ClosedJobs() (ids []string, proposals []uint64, err error) {
	err = db.all(func(v *view) error {
		for from := ""; ; {
			var closed storev1.BatchRow
			id, there, err := closedFrom(v, from, &closed)
			if err != nil || !there {
				return err
			}
			var row storev1.JobRow
			own, err := db.own(v, closed.GetJobId())
			if err == nil && own {
				err = lookUp(v, "jobs", closed.GetJobId(), &row)
			}
			switch {
			case err != nil && !isDamage(err):
				return err
			case own:
				ids, proposals = append(ids, closed.GetJobId()), append(proposals, row.GetProposals())
			}
			// Batches of a job begin with its id and a point, which the next character follows.
			from = max(closed.GetJobId()+"/", id+"\x00")
		}
	})
	return ids, proposals, err
}
