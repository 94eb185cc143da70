package rpc

import (
	"errors"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// checkTarget refuses the names of private groups and the wildcard target.
func checkTarget(target string) error {
	if records.IsPrivate(target) || target == records.EveryTarget {
		return invalid("target", "%q is not one of a device", target)
	}
	return nil
}

// best returns the best record that the owner may see. With an empty owner it considers shared records only.
func (s *Services) best(owner, target, workload, numerics string) (*tilthv1.Record, error) {
	shared, err := s.coordinator.Store().BestAllowed(target, workload, numerics)
	if owner == "" || err != nil && !errors.Is(err, records.ErrNotFound) {
		return shared, err
	}
	own, otherwise := s.coordinator.Store().BestAllowed(records.Private(target, owner), workload, numerics)
	switch {
	case errors.Is(otherwise, records.ErrNotFound):
		return shared, err
	case otherwise != nil:
		return nil, otherwise
	case err == nil && records.Cost(shared.GetMeasurement()) <= records.Cost(own.GetMeasurement()):
		return shared, nil
	}
	own.Target = target
	return own, nil
}

// known returns a lookup of the records that the owner may see.
func (s *Services) known(owner string) lookUp {
	store := s.coordinator.Store()
	if owner == "" {
		return store.Known
	}
	return func(target, workload, numerics, candidate string, limit int) (records.Known, error) {
		own, err := store.Known(records.Private(target, owner), workload, numerics, candidate, limit)
		if err != nil {
			return own, err
		}
		shared, err := store.Known(target, workload, numerics, candidate, max(limit-own.Trials, 1))
		shared.Trials += own.Trials
		if own.Best != nil && (shared.Best == nil || records.Cost(own.Best) < records.Cost(shared.Best)) {
			shared.Best = own.Best
		}
		if own.CandidateSeconds > 0 {
			shared.CandidateSeconds = own.CandidateSeconds
		}
		return shared, err
	}
}

// readerOf returns the owner whose private records a call may read in addition to shared ones, or "". An agent may
// read the records of the owner of its job. Admins see other owners' private jobs, but not their records.
func (s *Services) readerOf(v viewer, jobID string) (owner string, err error) {
	if jobID == "" {
		return v.name, nil
	}
	job, err := s.jobOwner(jobID)
	switch {
	case err != nil:
		return "", err
	case !v.agent && !v.sees(job):
		return "", notFound("job", jobID)
	case !job.Private, !v.agent && job.Name != v.name:
		return "", nil
	}
	return job.Name, nil
}
