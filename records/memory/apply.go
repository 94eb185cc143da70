package memory

import (
	"fmt"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/records"
)

// apply makes one change.
func (s *Store) apply(op records.Op) error {
	switch op := op.(type) {
	case records.PutRow:
		s.put(s.rows[op.Kind], op.Key, op.Row)
	case records.DropRow:
		s.remove(s.rows[op.Kind], op.Key)
	case records.PutJob:
		return s.putJob(op)
	case records.PutNew:
		s.putNew(op)
	case records.PutProgress:
		s.put(&s.jobOf(op.JobID).progress, progressKey(op.Task), op.Row)
	case records.AppendEvent:
		s.appendEvent(op.JobID, op.Sequence, event{row: op.Row})
	case records.AppendTrials:
		s.appendTrials(op)
	case records.DropJob:
		return s.dropJob(op.ID)
	case records.DropClosed:
		s.removeRange(s.rows[records.RowClosed], op.First, op.Beyond)
	case records.AddRecord:
		s.addRecord(op)
	case records.SuspectBests:
		return s.suspectBests(op)
	default:
		return fmt.Errorf("no such change: %T", op)
	}
	return nil
}

// removeRange removes the rows from first up to but not including beyond.
func (s *Store) removeRange(rows *sorted[string, []byte], first, beyond string) {
	var gone []string
	for key := range rows.from(first) {
		if key >= beyond {
			break
		}
		gone = append(gone, key)
	}
	for _, key := range gone {
		s.remove(rows, key)
	}
}

func (s *Store) putJob(op records.PutJob) error {
	j := s.jobOf(op.ID)
	var row storev1.JobRow
	if err := decode(op.Row, &row); err != nil {
		return err
	}
	s.size += int64(len(op.Row) - len(j.row))
	j.row, j.request = op.Row, string(row.GetRequestKey())
	s.lastJob = max(s.lastJob, op.ID)
	if op.Final {
		s.open.remove(op.ID)
	} else {
		s.open.put(op.ID, j)
	}
	return nil
}

func (s *Store) putNew(op records.PutNew) {
	j := s.jobOf(op.ID)
	s.size += int64(len(op.Spec) - len(j.spec))
	j.spec = op.Spec
	if _, there := s.requests[string(op.Request)]; !there {
		s.size += int64(len(op.Request)+len(op.ID)) + rowBytes
	}
	s.requests[string(op.Request)] = op.ID
	for i, p := range op.Progress {
		s.put(&j.progress, progressKey(uint32(i)), p)
	}
	for _, t := range op.Tasks {
		s.putWorkload(t.GetWorkloadDigest(), t.GetWorkload())
	}
}

func (s *Store) putWorkload(digest string, canonical []byte) {
	if _, there := s.workloads[digest]; !there {
		s.workloads[digest] = canonical
		s.size += int64(len(digest)+len(canonical)) + rowBytes
	}
}

// dropJob removes everything of a job except its records.
func (s *Store) dropJob(id string) error {
	j, there := s.jobs.remove(id)
	if !there {
		return nil
	}
	s.size -= j.sizeBytes(id)
	s.open.remove(id)
	s.remove(s.rows[records.RowEnded], id)
	if s.requests[j.request] == id {
		delete(s.requests, j.request)
		s.size -= int64(len(j.request)+len(id)) + rowBytes
	}
	for _, kind := range []records.RowKind{records.RowBatch, records.RowClosed} {
		s.removeRange(s.rows[kind], id+".", id+"/") // the character after '.'
	}
	return nil
}

func (s *Store) appendEvent(jobID string, sequence uint64, e event) {
	before, _ := s.jobOf(jobID).events.put(sequence, e)
	s.size += e.sizeBytes() - before.sizeBytes()
}

// appendTrials adds the records of one group and the row of their events.
func (s *Store) appendTrials(op records.AppendTrials) {
	g := s.groupOf(op.Group)
	for i, e := range op.Records {
		key := e.Key
		if _, there := g.rows.get(string(key[:])); there {
			key = records.KeyOfTrial(e.Measurement, op.Row.GetEvent().GetTrial().GetBatchId())
		}
		s.addEntry(g, e, key)
		op.Row.Trials[i].RecordKey = key[:]
	}
	s.appendEvent(op.JobID, op.Sequence, event{row: records.Encode(op.Row), group: g})
}

func (s *Store) addRecord(op records.AddRecord) (added bool) {
	if len(op.Workload) > 0 {
		s.putWorkload(op.Group.Workload, op.Workload)
	}
	g := s.groupOf(op.Group)
	if _, there := g.rows.get(string(op.Record.Key[:])); there {
		return false
	}
	s.addEntry(g, op.Record, op.Record.Key)
	return true
}

// addEntry stores a record under an unused key. If it refutes a best record, the next best replaces that.
func (s *Store) addEntry(g *group, e records.Entry, key records.Key) {
	s.put(&g.rows, string(key[:]), e.Row)
	switch {
	case records.Verified(e.Measurement):
		g.bests.Offer(key, e.Measurement)
	case records.Disqualifies(e.Measurement) && g.bests.HasCandidate(e.Measurement.GetCandidate().GetDigest()):
		g.bests = records.Choose(g.measurements())
	}
}

// suspectBests marks the best records of a device as suspect.
func (s *Store) suspectBests(op records.SuspectBests) error {
	for _, g := range s.groups.all() {
		for level, best := range g.bests {
			if best.Measurement.GetDevice() != op.Device || !best.Key.At().After(op.Since) {
				continue
			}
			r, err := g.record(best.Key)
			if err != nil {
				return err
			}
			r.Measurement.Suspected = op.Reason
			s.put(&g.rows, string(best.Key[:]), records.Encode(&r.Record))
			g.bests[level].Measurement = records.Essentials(r.GetMeasurement())
		}
	}
	return nil
}
