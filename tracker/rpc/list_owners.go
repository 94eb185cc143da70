package rpc

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// ListOwners implements tilthv1.JobServiceServer. Owners are sorted by name.
func (s *Services) ListOwners(_ context.Context, req *tilthv1.ListOwnersRequest) (*tilthv1.ListOwnersResponse, error) {
	var waiting map[string]int
	s.coordinator.Read(func(m *state.Machine) { waiting = m.Waiting() })
	owners, next, err := page(s, (*state.Machine).OwnerNames, req, func(m *state.Machine, name string) (*tilthv1.Owner, bool) {
		o := m.Owner(name, waiting)
		return o, o != nil
	})
	return &tilthv1.ListOwnersResponse{Owners: owners, NextPageToken: next}, err
}
