package services

import (
	"context"
	"errors"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// viewer is who looks. Private jobs are seen by their owner and by admins, private records serve their owner alone.
type viewer struct {
	name string
	// all jobs are seen, since an admin looks, or nobody is asked who they are.
	all bool
	// agent is one, who is handed what it works for whosever that is.
	agent bool
}

func viewerOf(ctx context.Context) viewer {
	caller, is := access.From(ctx)
	return viewer{name: caller.Name, all: !is || caller.Role == access.Admin, agent: is && caller.Role == access.Agent}
}

// sees says whether there is a job as far as the viewer goes.
func (v viewer) sees(job records.Owner) bool { return !job.Private || v.all || job.Name == v.name }

func ownerOf(spec *tilthv1.JobSpec) records.Owner {
	return records.Owner{Name: spec.GetOwner(), Private: spec.GetPrivate()}
}

// jobOwner is whose a job is, whether it has ended or not.
func (s *Services) jobOwner(id string) (owner records.Owner, err error) {
	var open bool
	s.engine.Read(func(m *state.Machine) { owner, open = m.JobOwner(id) })
	if open {
		return owner, nil
	}
	owner, err = s.engine.Store().JobOwner(id)
	if errors.Is(err, records.ErrNotFound) {
		return owner, notFound("job", id)
	}
	return owner, StoreError(err)
}

// mayWatch refuses who does not see a job, in the words about one that there never was.
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

// hideWork takes what the viewer does not see from what a device does.
func (v viewer) hideWork(m *state.Machine, d *tilthv1.Device) {
	for _, w := range d.GetWork() {
		if owner, is := m.JobOwner(w.GetJobId()); is && !v.sees(owner) {
			w.JobId, w.JobName, w.Task = "", "a private job", ""
		}
	}
}
