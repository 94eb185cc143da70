package rpc

import (
	"context"
	"errors"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// viewer is the caller of a read. Private jobs are visible to their owner and to admins, private records to their
// owner only.
type viewer struct {
	name string
	// all is set for admins and on trackers without authentication: every job is visible.
	all bool
	// agent is set for agents, which may read what they work on regardless of the owner.
	agent bool
}

func viewerOf(ctx context.Context) viewer {
	caller, is := access.From(ctx)
	return viewer{name: caller.Name, all: !is || caller.Role == access.Admin, agent: is && caller.Role == access.Agent}
}

// sees reports whether the viewer may know that the job exists.
func (v viewer) sees(job records.Owner) bool { return !job.Private || v.all || job.Name == v.name }

// jobOwner returns the owner of an open or ended job.
func (s *Services) jobOwner(id string) (owner records.Owner, err error) {
	var open bool
	s.coordinator.Read(func(m *state.Machine) { owner, open = m.JobOwner(id) })
	if open {
		return owner, nil
	}
	owner, err = s.coordinator.Store().JobOwner(id)
	if errors.Is(err, records.ErrNotFound) {
		return owner, notFound("job", id)
	}
	return owner, StoreError(err)
}

// mayWatch returns an error if the viewer may not see the job. It matches the error for a job that does not exist.
func (s *Services) mayWatch(v viewer, id string) error {
	if v.all || v.agent {
		return nil
	}
	owner, err := s.jobOwner(id)
	if err == nil && !v.sees(owner) {
		err = notFound("job", id)
	}
	return err
}

// hideWork hides the private jobs that the viewer may not see from a device's work.
func (v viewer) hideWork(m *state.Machine, d *tilthv1.Device) {
	for _, w := range d.GetWork() {
		if owner, is := m.JobOwner(w.GetJobId()); is && !v.sees(owner) {
			w.JobId, w.JobName, w.Task = "", "a private job", ""
		}
	}
}
