package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// callTimeout bounds a unary call.
const callTimeout = 30 * time.Second

// Client is connected to one tracker. It is safe for concurrent use.
type Client struct {
	addr    string
	conn    *grpc.ClientConn
	log     *slog.Logger
	jobs    tilthv1.JobServiceClient
	agents  tilthv1.AgentServiceClient
	records tilthv1.RecordServiceClient
	devices tilthv1.DeviceServiceClient
	admin   tilthv1.AdminServiceClient
}

// Dial returns a client of the tracker at host:port or unix:path. It connects on first use. Options
// authenticate the client (see caller.Proof).
func Dial(addr string, log *slog.Logger, options ...grpc.DialOption) (*Client, error) {
	conn, err := agent.Dial(addr, options...)
	if err != nil {
		return nil, err
	}
	return &Client{
		addr: addr, conn: conn, log: log,
		jobs:    tilthv1.NewJobServiceClient(conn),
		agents:  tilthv1.NewAgentServiceClient(conn),
		records: tilthv1.NewRecordServiceClient(conn),
		devices: tilthv1.NewDeviceServiceClient(conn),
		admin:   tilthv1.NewAdminServiceClient(conn),
	}, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Addr returns the address passed to Dial.
func (c *Client) Addr() string { return c.addr }

// Submit submits a job. It returns an error immediately if the tracker is unreachable. If a response is lost,
// it retries with the same request id, so that the job is created once. If ctx ends during the call, Submit
// still waits for the response for a while, so that the caller can cancel the job.
func (c *Client) Submit(ctx context.Context, spec *tilthv1.JobSpec) (*tilthv1.Job, error) {
	if _, err := call(ctx, &healthv1.HealthCheckRequest{}, healthv1.NewHealthClient(c.conn).Check); err != nil {
		return nil, c.explain("submit the job", err)
	}
	request := &tilthv1.SubmitJobRequest{RequestId: rand.Text(), Spec: spec}
	var job *tilthv1.Job
	err := retry.Do(ctx, c.log, retry.Policy{}, "SubmitJob", func(ctx context.Context) error {
		ctx, done := extendContext(ctx, answerTime)
		defer done()
		response, err := c.jobs.SubmitJob(ctx, request)
		job = response.GetJob()
		return err
	})
	if err != nil {
		return nil, c.explain("submit the job", err)
	}
	return job, nil
}

// answerTime is how long Submit waits for a response after ctx ended.
const answerTime = 5 * time.Second

// extendContext returns a context that ends some time after ctx, or when done is called.
func extendContext(ctx context.Context, by time.Duration) (longer context.Context, done func()) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(by)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(context.Cause(ctx))
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel(nil)
	}
}

// Job returns a job with the progress of its tasks.
func (c *Client) Job(ctx context.Context, id string) (*tilthv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.jobs.GetJob(ctx, &tilthv1.GetJobRequest{JobId: id})
	if err != nil {
		return nil, c.explain("show job "+id, err)
	}
	return response.GetJob(), nil
}

// call makes one unary call with a timeout.
func call[Q, R any](ctx context.Context, request Q, method func(context.Context, Q, ...grpc.CallOption) (R, error)) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return method(ctx, request)
}

// Cancel ends a job and keeps its measurements. Cancelling an ended job has no effect.
func (c *Client) Cancel(ctx context.Context, id, reason string) (*tilthv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.jobs.CancelJob(ctx, &tilthv1.CancelJobRequest{JobId: id, Reason: reason})
	if err != nil {
		return nil, c.explain("cancel job "+id, err)
	}
	return response.GetJob(), nil
}

// Delete removes an ended job with its events, but not its records. Deleting it again has no effect.
func (c *Client) Delete(ctx context.Context, id string) error {
	err := retry.Do(ctx, c.log, retry.Policy{}, "DeleteJob", func(ctx context.Context) error {
		_, err := c.jobs.DeleteJob(ctx, &tilthv1.DeleteJobRequest{JobId: id})
		return err
	})
	if err != nil {
		return c.explain("delete job "+id, err)
	}
	return nil
}

// Pause stops granting work of a job until it is resumed. Work in flight continues.
func (c *Client) Pause(ctx context.Context, id, reason string) (*tilthv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.jobs.PauseJob(ctx, &tilthv1.PauseJobRequest{JobId: id, Reason: reason})
	if err != nil {
		return nil, c.explain("pause job "+id, err)
	}
	return response.GetJob(), nil
}

// Resume queues a paused job again.
func (c *Client) Resume(ctx context.Context, id, reason string) (*tilthv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.jobs.ResumeJob(ctx, &tilthv1.ResumeJobRequest{JobId: id, Reason: reason})
	if err != nil {
		return nil, c.explain("resume job "+id, err)
	}
	return response.GetJob(), nil
}

// Retry queues abandoned batches of a job again, all of them if none is named, and returns their ids.
func (c *Client) Retry(ctx context.Context, id string, batches ...string) (retried []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.jobs.RetryDeadLetters(ctx, &tilthv1.RetryDeadLettersRequest{JobId: id, BatchIds: batches})
	if err != nil {
		return nil, c.explain("retry dead letters of job "+id, err)
	}
	return response.GetBatchIds(), nil
}

// Owners returns the owners of unfinished jobs, by name.
func (c *Client) Owners(ctx context.Context) (owners []*tilthv1.Owner, err error) {
	err = c.pages(ctx, "list owners", func(ctx context.Context, token string) (string, error) {
		page, err := c.jobs.ListOwners(ctx, &tilthv1.ListOwnersRequest{PageSize: itemsPerPage, PageToken: token})
		owners = append(owners, page.GetOwners()...)
		return page.GetNextPageToken(), err
	})
	return owners, err
}

// Outage returns the current outage, in which most agents are silent, or nil.
func (c *Client) Outage(ctx context.Context) (*tilthv1.Outage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.agents.ListAgents(ctx, &tilthv1.ListAgentsRequest{PageSize: 1})
	if err != nil {
		return nil, c.explain("ask for outages", err)
	}
	return response.GetOutage(), nil
}

// Agents returns the joined agents of a kind (unspecified means every kind), by name.
func (c *Client) Agents(ctx context.Context, kind tilthv1.AgentKind) (agents []*tilthv1.Agent, err error) {
	err = c.pages(ctx, "list agents", func(ctx context.Context, token string) (string, error) {
		page, err := c.agents.ListAgents(ctx, &tilthv1.ListAgentsRequest{Kind: kind, PageSize: itemsPerPage, PageToken: token})
		agents = append(agents, page.GetAgents()...)
		return page.GetNextPageToken(), err
	})
	return agents, err
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
