package client

import (
	"context"

	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Watch is agent.Watch for people: what the tracker refuses is explained. An error of visit comes back as it is.
func (c *Client) Watch(ctx context.Context, jobID string, from uint64, visit func(*tilthv1.JobEvent) error) error {
	return c.WatchStatus(ctx, jobID, from, visit, nil)
}

// WatchStatus is agent.WatchStatus for people in the same way.
func (c *Client) WatchStatus(ctx context.Context, jobID string, from uint64, visit func(*tilthv1.JobEvent) error,
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
	err := agent.WatchStatus(ctx, c.conn, c.log, jobID, from, func(event *tilthv1.JobEvent) error {
		failure = visit(event)
		return failure
	}, hear)
	if err == nil || failure != nil || ctx.Err() != nil {
		return err
	}
	return c.explain("watch job "+jobID, err)
}
