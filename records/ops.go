package records

import (
	"time"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Op is one change of a store, by value: one of the types below. Except for PutRow and DropRow, the method of Write
// with the same name describes it. Rows are encoded messages. The store owns them, including their spare capacity,
// once the write is committed.
type Op interface{ op() }

type (
	// PutRow has a row of a kind whose rows are independent of all others: RowEnded, RowBatch, RowClosed, RowAgent or
	// RowDevice.
	PutRow struct {
		Kind RowKind
		Key  string
		Row  []byte
	}
	// DropRow removes such a row if it exists.
	DropRow struct {
		Kind RowKind
		Key  string
	}
	// PutJob has a storev1.JobRow. Final is set if the job has ended.
	PutJob struct {
		ID    string
		Row   []byte
		Final bool
	}
	// PutNew has the result of EncodeJob.
	PutNew struct {
		ID      string
		Request []byte
		*NewJob
	}
	// PutProgress has a tilthv1.TaskProgress.
	PutProgress struct {
		JobID string
		Task  uint32
		Row   []byte
	}
	// AppendEvent has a storev1.EventRow.
	AppendEvent struct {
		JobID    string
		Sequence uint64
		Row      []byte
	}
	// AppendTrials has one record for each trial of a row; Sequence is that of the row's last event. The store sets
	// the record keys in the row. A record whose key is taken is stored under another key: see KeyOfTrial.
	AppendTrials struct {
		JobID    string
		Sequence uint64
		Group    Group
		Records  []Entry
		Row      *storev1.EventRow
	}
	// DropJob has no row.
	DropJob struct{ ID string }
	// DropClosed has the half-open range of ids.
	DropClosed struct{ First, Beyond string }
	// AddRecord has a record and its workload's canonical form, which may be empty if unknown.
	AddRecord struct {
		Group    Group
		Workload []byte
		Record   Entry
	}
	// SuspectBests has no row.
	SuspectBests struct {
		Device string
		Since  time.Time
		Reason string
	}
)

func (PutRow) op()       {}
func (DropRow) op()      {}
func (PutJob) op()       {}
func (PutNew) op()       {}
func (PutProgress) op()  {}
func (AppendEvent) op()  {}
func (AppendTrials) op() {}
func (DropJob) op()      {}
func (DropClosed) op()   {}
func (AddRecord) op()    {}
func (SuspectBests) op() {}

// Entry is a record of a group: its key, its measurement, and its row, a tilthv1.Record without the fields that the
// group implies.
type Entry struct {
	Key         Key
	Measurement *tilthv1.Measurement
	Row         []byte
}

func newEntry(jobID, name string, m *tilthv1.Measurement) Entry {
	return Entry{Key: KeyOf(m), Measurement: m, Row: Encode(&tilthv1.Record{Measurement: m, JobId: jobID, Name: Cut(name, MaxNameBytes)})}
}

// NewAddRecord returns the change that adds a record.
func NewAddRecord(r *tilthv1.Record) AddRecord {
	return AddRecord{
		Group: Group{r.GetTarget(), r.GetWorkloadDigest()}, Workload: r.GetWorkload(), Record: newEntry(r.GetJobId(), r.GetName(), r.GetMeasurement()),
	}
}
