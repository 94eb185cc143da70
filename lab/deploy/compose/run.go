package compose

import (
	"context"
	"errors"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// Run runs one more container of a service to its end, as "docker compose run --rm --no-deps" does, and returns its
// last words: with more variables, one more volume, and a command of its own.
func (f *Farm) Run(ctx context.Context, service string, env []string, volume container.Volume,
	command ...string) (string, error) {
	s, err := f.Project.GetService(service)
	if err != nil {
		return "", err
	}
	s.Command, s.HealthCheck, s.Ports = command, nil, nil
	from, err := f.Images.Of(ctx, s)
	if err != nil {
		return "", err
	}
	r := &Running{Name: f.Project.Name + "-" + service + "-run"}
	c, err := f.spec(s, from, r.Name)
	if err == nil {
		err = f.connect(s, r)
	}
	if err != nil {
		return "", err
	}
	c.Network, c.Env, c.Volumes = r.Net, append(c.Env, env...), append(c.Volumes, volume)
	if r.Container, err = f.Machine.Start(c); err != nil {
		return "", err
	}
	err = errors.Join(r.Wait(ctx), r.Remove())
	return r.LastWords(), err
}

// Restart ends a service's containers, where they have not ended, and starts them again with what they had written.
func (f *Farm) Restart(ctx context.Context, service string) error {
	for _, r := range f.Of(service) {
		if err := errors.Join(r.end(), r.Remove()); err != nil {
			return err
		}
		again, err := f.Machine.Start(r.Spec)
		if err != nil {
			return err
		}
		// Holders of r, such as its health check, continue with the new container.
		*r.Container = *again
		r.watch(ctx)
	}
	return nil
}

// end stops a container that has not ended.
func (r *Running) end() error {
	select {
	case <-r.Done():
		return nil
	default:
		return r.Stop(r.Grace)
	}
}

// Down stops services, dependents first. Each must end within its grace period with status 0.
func (f *Farm) Down() error {
	var failed error
	err := f.Project.ForEachService(f.Project.ServiceNames(), func(_ string, s *types.ServiceConfig) error {
		for _, r := range f.Of(s.Name) {
			failed = errors.Join(failed, r.end())
			for _, port := range r.published {
				failed = errors.Join(failed, port.Close())
			}
		}
		return nil
	}, types.IncludeDependents)
	return errors.Join(failed, err)
}
