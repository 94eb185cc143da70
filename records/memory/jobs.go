package memory

import (
	"context"
	"fmt"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// job holds the rows of a job.
type job struct {
	row      []byte // a storev1.JobRow; nil until first stored
	spec     []byte // a tilthv1.JobSpec
	request  string // its key
	progress sorted[string, []byte]
	events   sorted[uint64, event] // by the sequence of the row's last event
}

// event is a row of events.
type event struct {
	row   []byte // a storev1.EventRow; keys of its trials are relative to group
	group *group // of the trials; nil without trials
}

func (e event) sizeBytes() int64 {
	if e.row == nil {
		return 0
	}
	return int64(len(e.row)) + rowBytes
}

func (j *job) sizeBytes(id string) int64 {
	size := int64(len(id)+len(j.row)+len(j.spec)) + rowBytes
	for key, row := range j.progress.all() {
		size += int64(len(key)+len(row)) + rowBytes
	}
	for _, e := range j.events.all() {
		size += e.sizeBytes()
	}
	return size
}

func progressKey(task uint32) string { return fmt.Sprintf("%010d", task) }

// jobOf returns a job, creating it if necessary. The caller must hold the lock.
func (s *Store) jobOf(id string) *job {
	j, there := s.jobs.get(id)
	if !there {
		j = &job{}
		s.jobs.put(id, j)
		s.size += int64(len(id)) + rowBytes
	}
	return j
}

// look calls at with a job's rows while holding the lock.
func (s *Store) look(id string, at func(j *job)) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	j, there := s.jobs.get(id)
	if !there || j.row == nil {
		return fmt.Errorf("job %q: %w", id, records.ErrNotFound)
	}
	at(j)
	return nil
}

// rows holds references to a job's rows, to be decoded without the lock.
type rows struct {
	id       string
	row      []byte
	spec     []byte
	progress [][]byte
	last     uint64
}

func rowsOf(id string, j *job) rows {
	r := rows{id: id, row: j.row, spec: j.spec}
	for _, p := range j.progress.all() {
		r.progress = append(r.progress, p)
	}
	r.last, _ = j.events.last()
	return r
}

func (r rows) load() (*records.OpenJob, error) {
	open := &records.OpenJob{ID: r.id, Row: &storev1.JobRow{}, Spec: &tilthv1.JobSpec{}, LastSequence: r.last}
	if err := decode(r.row, open.Row); err != nil {
		return nil, err
	}
	if err := decode(r.spec, open.Spec); err != nil {
		return nil, err
	}
	records.CutJob(open.Row, open.Spec)
	for _, row := range r.progress[:min(len(r.progress), len(open.Spec.GetTasks()))] {
		p := &tilthv1.TaskProgress{}
		if err := decode(row, p); err != nil {
			return nil, err
		}
		open.Progress = append(open.Progress, p)
	}
	return open, nil
}

// Job implements records.Jobs.
func (s *Store) Job(id string) (*tilthv1.Job, error) {
	var r rows
	if err := s.look(id, func(j *job) { r = rowsOf(id, j) }); err != nil {
		return nil, err
	}
	open, err := r.load()
	if err != nil {
		return nil, err
	}
	return open.Job(), nil
}

// JobRow implements records.Jobs.
func (s *Store) JobRow(id string) (*storev1.JobRow, error) {
	var stored []byte
	row := &storev1.JobRow{}
	if err := s.look(id, func(j *job) { stored = j.row }); err != nil {
		return row, err
	}
	return row, decode(stored, row)
}

// JobOwner implements records.Jobs.
func (s *Store) JobOwner(id string) (owner records.Owner, err error) {
	err = s.look(id, func(j *job) { owner = records.OwnerOf(j.spec) })
	return owner, err
}

// JobByRequest implements records.Jobs.
func (s *Store) JobByRequest(owner, requestID string) (id string, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	id, there := s.requests[string(records.RequestKey(owner, requestID))]
	if !there {
		return "", fmt.Errorf("request %q of %q: %w", requestID, owner, records.ErrNotFound)
	}
	return id, nil
}

// OpenJobs implements records.Jobs.
func (s *Store) OpenJobs() (open []*records.OpenJob, err error) {
	s.mu.RLock()
	var all []rows
	for id, j := range s.open.all() {
		all = append(all, rowsOf(id, j))
	}
	s.mu.RUnlock()
	for _, r := range all {
		j, err := r.load()
		if err != nil {
			return nil, err
		}
		open = append(open, j)
	}
	return open, nil
}

// LastJobID implements records.Jobs.
func (s *Store) LastJobID() (string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lastJob, nil
}

// EndedJobs implements records.Jobs.
func (s *Store) EndedJobs(visit func(id string, row *storev1.EndedRow)) error {
	return visitAll(s, records.RowEnded, visit)
}

// Sweep implements records.Jobs. Jobs are dropped completely, so it does nothing.
func (s *Store) Sweep(ctx context.Context) error { return context.Cause(ctx) }

// Jobs implements records.Jobs.
func (s *Store) Jobs(q records.JobQuery) (jobs []*tilthv1.Job, next string, err error) {
	p := records.JobPage{JobQuery: q}
	for before := q.Before; ; {
		r, there := s.newest(q, before)
		if !there {
			return p.Jobs, "", nil
		}
		before = r.id
		full, err := p.Take(r.id, func() (*tilthv1.Job, error) { return r.listed(q) })
		if full || err != nil {
			return p.Jobs, p.Next, err
		}
	}
}

// listed returns the job if the query selects it, else nil.
func (r rows) listed(q records.JobQuery) (*tilthv1.Job, error) {
	open, err := r.load()
	if err != nil {
		return nil, err
	}
	selected, err := q.Selects(open.Row, nil, func() (records.Owner, error) { return records.OwnerOf(r.spec), nil })
	if err != nil || !selected {
		return nil, err
	}
	return open.Listed(), nil
}

// newest returns the newest job before an id (empty for the newest of all) that the query may select.
func (s *Store) newest(q records.JobQuery, before string) (rows, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	among := &s.jobs
	if q.OnlyOpen() {
		among = &s.open
	}
	older := among.backward()
	if before != "" {
		older = among.before(before)
	}
	for id, j := range older {
		if j.row != nil {
			return rowsOf(id, j), true
		}
	}
	return rows{}, false
}

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
