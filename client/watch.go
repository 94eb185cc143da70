package client

import (
	"context"

	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Watch works like agent.Watch, with refusals explained for people. Errors of visit are returned unchanged.
func (c *Client) Watch(ctx context.Context, jobID string, from uint64, visit func(*tilthv1.JobEvent) error) error {
	return c.WatchStatus(ctx, &tilthv1.WatchJobRequest{JobId: jobID, FromSequence: from}, visit, nil)
}

// WatchStatus works like agent.WatchStatus, with refusals explained for people.
func (c *Client) WatchStatus(ctx context.Context, req *tilthv1.WatchJobRequest, visit func(*tilthv1.JobEvent) error,
	status func(*tilthv1.JobStatus) error,
) error {
	var failure error
	var hear func(*tilthv1.JobStatus) error
	if status != nil {
		hear = func(s *tilthv1.JobStatus) error {
			failure = status(s)
			return failure
		}
	}
	err := agent.WatchStatus(ctx, c.conn, c.log, req, func(event *tilthv1.JobEvent) error {
		failure = visit(event)
		return failure
	}, hear)
	if err == nil || failure != nil || ctx.Err() != nil {
		return err
	}
	return c.explain("watch job "+req.GetJobId(), err)
}
