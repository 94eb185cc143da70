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
	devices tilthv1.DeviceServiceClient
	admin   tilthv1.AdminServiceClient
}

// Dial makes a client of the tracker at host:port or unix:path. It connects when first used. Options say how it proves
// who it is (see caller.Proof); without any it does not.
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

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Addr is the tracker's address as it was given to Dial.
func (c *Client) Addr() string { return c.addr }

// Submit hands in a job. A tracker that cannot be reached at all is an error at once; an answer that is lost is asked
// for again under the same request id, so the job is made once. When ctx ends while the tracker is asked, its answer
// is still waited for, a while: whoever gave up can then cancel the job.
func (c *Client) Submit(ctx context.Context, spec *tilthv1.JobSpec) (*tilthv1.Job, error) {
	if _, err := call(ctx, &healthv1.HealthCheckRequest{}, healthv1.NewHealthClient(c.conn).Check); err != nil {
		return nil, c.explain("submit the job", err)
	}
	request := &tilthv1.SubmitJobRequest{RequestId: rand.Text(), Spec: spec}
	var job *tilthv1.Job
	err := retry.Do(ctx, c.log, retry.Policy{}, "SubmitJob", func(ctx context.Context) error {
		ctx, done := outlast(ctx, answerTime)
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

// answerTime is how long the answer to a submission is waited for once nobody else does.
const answerTime = 5 * time.Second

// outlast is a context that ends a while after ctx, or when done is called.
func outlast(ctx context.Context, by time.Duration) (longer context.Context, done func()) {
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

// call makes one call within its time.
func call[Q, R any](ctx context.Context, request Q, method func(context.Context, Q, ...grpc.CallOption) (R, error)) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return method(ctx, request)
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

// Delete removes a job that has ended, with its events; records stay. Deleting one again changes nothing.
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

// Pause has nothing more of a job granted until it is resumed; what is in flight ends.
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

// Retry queues batches of a job anew that were given up, all of them when none is named, and returns which.
func (c *Client) Retry(ctx context.Context, id string, batches ...string) (retried []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.jobs.RetryDeadLetters(ctx, &tilthv1.RetryDeadLettersRequest{JobId: id, BatchIds: batches})
	if err != nil {
		return nil, c.explain("retry dead letters of job "+id, err)
	}
	return response.GetBatchIds(), nil
}

// Owners returns the owners of jobs that have not ended, by name.
func (c *Client) Owners(ctx context.Context) (owners []*tilthv1.Owner, err error) {
	err = c.pages(ctx, "list owners", func(ctx context.Context, token string) (string, error) {
		page, err := c.jobs.ListOwners(ctx, &tilthv1.ListOwnersRequest{PageSize: itemsPerPage, PageToken: token})
		owners = append(owners, page.GetOwners()...)
		return page.GetNextPageToken(), err
	})
	return owners, err
}

// Outage tells of most agents being silent; nil while they are not.
func (c *Client) Outage(ctx context.Context) (*tilthv1.Outage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.agents.ListAgents(ctx, &tilthv1.ListAgentsRequest{PageSize: 1})
	if err != nil {
		return nil, c.explain("ask for outages", err)
	}
	return response.GetOutage(), nil
}

// Agents returns the agents of a kind that joined (unspecified = of every kind), by name.
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
