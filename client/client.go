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
	"github.com/tilth-dev/tilth/internal/wire"
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
		select {
		case <-time.After(by):
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
	return get(ctx, c, "show job "+id, &tilthv1.GetJobRequest{JobId: id}, c.jobs.GetJob, (*tilthv1.GetJobResponse).GetJob)
}

// call makes one unary call with a timeout.
func call[Q, R any](ctx context.Context, request Q, method func(context.Context, Q, ...grpc.CallOption) (R, error)) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return method(ctx, request)
}

// get makes one unary call and returns a value of the response. doing describes the action for errors.
func get[Q, R, V any](ctx context.Context, c *Client, doing string, request Q, method func(context.Context, Q, ...grpc.CallOption) (R, error), value func(R) V) (v V, err error) {
	response, err := call(ctx, request, method)
	if err != nil {
		return v, c.explain(doing, err)
	}
	return value(response), nil
}

// Cancel ends a job and keeps its measurements. Cancelling an ended job has no effect.
func (c *Client) Cancel(ctx context.Context, id, reason string) (*tilthv1.Job, error) {
	return get(ctx, c, "cancel job "+id, &tilthv1.CancelJobRequest{JobId: id, Reason: reason}, c.jobs.CancelJob, (*tilthv1.CancelJobResponse).GetJob)
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
	return get(ctx, c, "pause job "+id, &tilthv1.PauseJobRequest{JobId: id, Reason: reason}, c.jobs.PauseJob, (*tilthv1.PauseJobResponse).GetJob)
}

// Resume queues a paused job again.
func (c *Client) Resume(ctx context.Context, id, reason string) (*tilthv1.Job, error) {
	return get(ctx, c, "resume job "+id, &tilthv1.ResumeJobRequest{JobId: id, Reason: reason}, c.jobs.ResumeJob, (*tilthv1.ResumeJobResponse).GetJob)
}

// Retry queues abandoned batches of a job again, all of them if none is named, and returns their ids.
func (c *Client) Retry(ctx context.Context, id string, batches ...string) (retried []string, err error) {
	return get(ctx, c, "retry dead letters of job "+id, &tilthv1.RetryDeadLettersRequest{JobId: id, BatchIds: batches}, c.jobs.RetryDeadLetters, (*tilthv1.RetryDeadLettersResponse).GetBatchIds)
}

// Owners returns the owners of unfinished jobs, by name.
func (c *Client) Owners(ctx context.Context) ([]*tilthv1.Owner, error) {
	request := &tilthv1.ListOwnersRequest{PageSize: itemsPerPage}
	return list(ctx, c, "list owners", request, &request.PageToken, c.jobs.ListOwners, (*tilthv1.ListOwnersResponse).GetOwners)
}

// Outage returns the current outage, in which most agents are silent, or nil.
func (c *Client) Outage(ctx context.Context) (*tilthv1.Outage, error) {
	return get(ctx, c, "ask for outages", &tilthv1.ListAgentsRequest{PageSize: 1}, c.agents.ListAgents, (*tilthv1.ListAgentsResponse).GetOutage)
}

// Agents returns the joined agents of a kind (unspecified means every kind), by name.
func (c *Client) Agents(ctx context.Context, kind tilthv1.AgentKind) ([]*tilthv1.Agent, error) {
	request := &tilthv1.ListAgentsRequest{Kind: kind, PageSize: itemsPerPage}
	return list(ctx, c, "list agents", request, &request.PageToken, c.agents.ListAgents, (*tilthv1.ListAgentsResponse).GetAgents)
}

// Agent returns one agent.
func (c *Client) Agent(ctx context.Context, name string) (*tilthv1.Agent, error) {
	return get(ctx, c, fmt.Sprintf("show agent %q", name), &tilthv1.GetAgentRequest{Name: name}, c.agents.GetAgent, (*tilthv1.GetAgentResponse).GetAgent)
}

// ErrUnreachable is wrapped by errors of calls that could not reach a tracker.
var ErrUnreachable = wire.ErrUnreachable

// explain adds the attempted action and the remedy to an error, on one line.
func (c *Client) explain(attempt string, err error) error { return wire.Explain(c.addr, attempt, err) }

// itemsPerPage keeps messages far below the size limit; an item takes some kilobytes.
const itemsPerPage = 1000

// list makes a call for each page of a list, and returns the items of all pages. token is the request's.
func list[Q any, R interface{ GetNextPageToken() string }, V any](
	ctx context.Context, c *Client, doing string, request Q, token *string, method func(context.Context, Q, ...grpc.CallOption) (R, error), items func(R) []V,
) (all []V, err error) {
	for {
		page, err := call(ctx, request, method)
		if err != nil {
			return nil, c.explain(doing, err)
		}
		all = append(all, items(page)...)
		if *token = page.GetNextPageToken(); *token == "" {
			return all, nil
		}
	}
}
