package rpc

import (
	"context"
	"crypto/rand"

	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// Join implements tilthv1.AgentServiceServer.
func (s *Services) Join(ctx context.Context, req *tilthv1.JoinRequest) (*tilthv1.JoinResponse, error) {
	spec := req.GetSpec()
	if err := checkAgent(spec); err != nil {
		return nil, err
	}
	session := rand.Text()
	joined, err := result(ctx, s, func(c *state.Change) (state.Joined, error) { return c.Join(spec, session, callerName(ctx)) })
	if err != nil {
		return nil, err
	}
	return &tilthv1.JoinResponse{
		Session: session, HeartbeatInterval: durationpb.New(joined.HeartbeatInterval), Calibrate: joined.Calibrate,
	}, nil
}
