package loadtest

import (
	"errors"
	"fmt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// verdict compares the store with the acknowledged data.
type verdict struct {
	// Lost counts acknowledged jobs, candidates and trials that the store lacks.
	Lost int
	// Duplicated counts repeated trials in the store.
	Duplicated int
}

const eventsPerRead = 4096

// compare compares the ledger with the store.
func (l *ledger) compare(db records.Jobs) (v verdict, err error) {
	for id, acknowledged := range l.jobs {
		stored, err := readLog(db, id, len(acknowledged.recorded), &v)
		if errors.Is(err, records.ErrNotFound) {
			v.Lost++
			continue
		}
		if err != nil {
			return v, err
		}
		for task := range acknowledged.recorded {
			v.Lost += acknowledged.proposed[task].without(stored.proposed[task])
			v.Lost += acknowledged.recorded[task].without(stored.recorded[task])
		}
	}
	return v, nil
}

// readLog reads a job's account from the store. It reads every trial's record with its event.
func readLog(db records.Jobs, id string, tasks int, v *verdict) (*account, error) {
	if _, err := db.JobRow(id); err != nil {
		return nil, err
	}
	a := newAccount(tasks)
	for next := uint64(1); ; {
		events, err := db.Events(id, next, eventsPerRead)
		if err != nil || len(events) == 0 {
			return a, err
		}
		for _, e := range events {
			if e.GetSequence() != next {
				return nil, fmt.Errorf("event %d of job %s follows %d", e.GetSequence(), id, next-1)
			}
			next++
			a.add(e, v)
		}
	}
}

func (a *account) add(e *tilthv1.JobEvent, v *verdict) {
	switch {
	case e.GetProposed() != nil:
		for _, c := range e.GetProposed().GetCandidates() {
			a.proposed[e.GetProposed().GetTaskIndex()].set(c.GetTrial())
		}
	case e.GetTrial() != nil:
		if !a.recorded[e.GetTrial().GetTaskIndex()].set(e.GetTrial().GetMeasurement().GetCandidate().GetTrial()) {
			v.Duplicated++
		}
	}
}
