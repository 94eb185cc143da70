// Package client is what asks a tracker for something from outside the farm: it submits jobs, follows them through
// restarts and broken connections, and reads devices and records.
package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/agent"
	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// callTimeout bounds one call that is not a stream.
const callTimeout = 30 * time.Second

// Client speaks to one tracker. Its methods may be called from many goroutines.
type Client struct {
	addr    string
	conn    *grpc.ClientConn
	log     *slog.Logger
	jobs    tilthv1.JobServiceClient
	agents  tilthv1.AgentServiceClient
	records tilthv1.RecordServiceClient
}

// Dial makes a client of the tracker at host:port or unix:path. It connects when first used.
func Dial(addr string, log *slog.Logger) (*Client, error) {
	conn, err := agent.Dial(addr)
	if err != nil {
		return nil, err
	}
	return &Client{
		addr: addr, conn: conn, log: log,
		jobs:    tilthv1.NewJobServiceClient(conn),
		agents:  tilthv1.NewAgentServiceClient(conn),
		records: tilthv1.NewRecordServiceClient(conn),
	}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Addr is the tracker's address as it was given to Dial.
func (c *Client) Addr() string { return c.addr }

// Submit hands in a job. A tracker that cannot be reached at all is an error at once; an answer that is lost is asked
// for again under the same request id, so the job is made once.
func (c *Client) Submit(ctx context.Context, spec *tilthv1.JobSpec) (*tilthv1.Job, error) {
	if _, err := c.ListJobs(ctx, 1); err != nil {
		return nil, err
	}
	request := &tilthv1.SubmitJobRequest{RequestId: rand.Text(), Spec: spec}
	var job *tilthv1.Job
	err := retry.Do(ctx, c.log, retry.Policy{}, "SubmitJob", func(ctx context.Context) error {
		response, err := c.jobs.SubmitJob(ctx, request)
		job = response.GetJob()
		return err
	})
	if err != nil {
		return nil, c.explain("submit the job", err)
	}
	return job, nil
}

// Job returns one job with the progress of its tasks.
func (c *Client) Job(ctx context.Context, id string) (*tilthv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.jobs.GetJob(ctx, &tilthv1.GetJobRequest{JobId: id})
	if err != nil {
		return nil, c.explain("show job "+id, err)
	}
	return response.GetJob(), nil
}

// ListJobs returns at most limit jobs (0 = the tracker's own limit), newest first, in one of the states (none = all).
func (c *Client) ListJobs(ctx context.Context, limit int, states ...tilthv1.JobState) ([]*tilthv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.jobs.ListJobs(ctx, &tilthv1.ListJobsRequest{Limit: uint32(limit), States: states})
	if err != nil {
		return nil, c.explain("list jobs", err)
	}
	return response.GetJobs(), nil
}

// Cancel ends a job; what was measured stays. Cancelling an ended job changes nothing.
func (c *Client) Cancel(ctx context.Context, id, reason string) (*tilthv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.jobs.CancelJob(ctx, &tilthv1.CancelJobRequest{JobId: id, Reason: reason})
	if err != nil {
		return nil, c.explain("cancel job "+id, err)
	}
	return response.GetJob(), nil
}

// Agents returns the agents of a kind that joined (unspecified = of every kind), by name.
func (c *Client) Agents(ctx context.Context, kind tilthv1.AgentKind) ([]*tilthv1.Agent, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.agents.ListAgents(ctx, &tilthv1.ListAgentsRequest{Kind: kind})
	if err != nil {
		return nil, c.explain("list agents", err)
	}
	return response.GetAgents(), nil
}

// Agent returns one agent.
func (c *Client) Agent(ctx context.Context, name string) (*tilthv1.Agent, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.agents.GetAgent(ctx, &tilthv1.GetAgentRequest{Name: name})
	if err != nil {
		return nil, c.explain(fmt.Sprintf("show agent %q", name), err)
	}
	return response.GetAgent(), nil
}
