package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Run describes a run of packages on a device of the farm.
type Run struct {
	// Packages lists package files compiled for Target. Several are timed in turns.
	Packages []string
	Target   *target.Target
	// Device is a device name, a device class or a label (rack=3); empty means any suitable device.
	Device string
	// Inputs is an archive of arrays; empty means random data. Outputs requests the outputs of the first execution.
	Inputs  string
	Outputs bool
	// Repeat is the number of timed samples of Number executions each. Profile is the number of executions in
	// which kernel calls are timed. 0 disables them.
	Repeat, Number, Profile int
	// Limit bounds the time on the device; 0 means the tracker's default.
	Limit time.Duration
	Owner string
	// Patience configures waiting for a suitable device.
	Patience Patience
	// Waits, if set, is called with the reason for waiting whenever it changes, and with nil when the job proceeds.
	Waits func(*tilthv1.Wait)
}

// RunPackages runs packages on a device of the farm and returns the finished job with its result. started is
// called when the job is queued. If ctx ends first, the job is cancelled and the error is the cause. If this process
// dies or loses its connection, the tracker cancels the job. A failed job is returned as an error with its reason.
func (c *Client) RunPackages(ctx context.Context, r Run, started func(*tilthv1.Job)) (*tilthv1.Job, error) {
	var spec *tilthv1.JobSpec
	err := r.Patience.Try(ctx, func(ctx context.Context) (err error) {
		spec, err = c.runSpec(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	job, err := c.submitUploaded(ctx, spec, func() error { return c.uploadRun(ctx, r, spec.GetRun()) })
	if err != nil {
		return nil, err
	}
	started(job)
	return c.awaitRun(ctx, job.GetId(), r.Waits)
}

// runSpec returns the job for a run on an available device.
func (c *Client) runSpec(ctx context.Context, r Run) (*tilthv1.JobSpec, error) {
	runners, err := c.Agents(ctx, tilthv1.AgentKind_AGENT_KIND_RUNNER)
	if err != nil {
		return nil, err
	}
	class, device, err := chooseRunner(present(runners), r.Device, r.Target)
	if err != nil {
		return nil, c.at(err)
	}
	spec := &tilthv1.JobSpec{
		Name: wire.Label("run " + filepath.Base(r.Packages[0])), Owner: r.Owner, Target: &tilthv1.TargetSpec{DeviceClass: class},
		Run: &tilthv1.RunSpec{
			Outputs: r.Outputs, Repeat: uint32(r.Repeat), Number: uint32(max(r.Number, 1)), Profile: uint32(r.Profile), Device: device,
			Attached: true,
		},
	}
	if r.Limit > 0 {
		spec.Run.Limit = durationpb.New(r.Limit)
	}
	return spec, c.CheckFarm(ctx, spec)
}

// maxUploads is the number of uploads of a file that is evicted before the job exists.
const maxUploads = 3

// submitUploaded uploads the files of a job and submits it. It repeats uploads that were evicted in between.
func (c *Client) submitUploaded(ctx context.Context, spec *tilthv1.JobSpec, upload func() error) (*tilthv1.Job, error) {
	for attempt := 1; ; attempt++ {
		if err := upload(); err != nil {
			return nil, err
		}
		job, err := c.Submit(ctx, spec)
		if err == nil || attempt == maxUploads || wire.Reason(err) != wire.ReasonMissingArtifact {
			return job, err
		}
	}
}

// upload uploads a file.
func (c *Client) upload(ctx context.Context, role, path string) (*tilthv1.ArtifactRef, error) {
	ref, err := artifact.NewClient(c.conn, nil, c.log).Upload(ctx, role, path)
	if err != nil {
		return nil, c.explain("upload "+path, err)
	}
	return ref, nil
}

func (c *Client) uploadRun(ctx context.Context, r Run, run *tilthv1.RunSpec) (err error) {
	run.Packages = nil
	for _, path := range r.Packages {
		ref, err := c.upload(ctx, "package", path)
		if err != nil {
			return err
		}
		run.Packages = append(run.Packages, &tilthv1.RunPackage{Name: wire.Label(filepath.Base(path)), Artifact: ref})
	}
	if r.Inputs != "" {
		run.Inputs, err = c.upload(ctx, "inputs", r.Inputs)
	}
	return err
}

// MakePackage has a builder compile the model of an ended job with its best records, unless that was done before, and
// returns the finished job. The outputs of its result are the package. waits is called with the reason for waiting
// whenever it changes. If ctx ends first, the builder continues.
func (c *Client) MakePackage(ctx context.Context, id string, waits func(*tilthv1.Wait)) (*tilthv1.Job, error) {
	job, err := get(ctx, c, "make a package of job "+id, &tilthv1.MakePackageRequest{JobId: id}, c.jobs.MakePackage, (*tilthv1.MakePackageResponse).GetJob)
	if err != nil {
		return nil, err
	}
	return c.followRun(ctx, &tilthv1.WatchJobRequest{JobId: job.GetId()}, waits)
}

// followRun follows a job to its end and returns it. A failed job is an error with its reason; waits is Run.Waits.
func (c *Client) followRun(ctx context.Context, request *tilthv1.WatchJobRequest, waits func(*tilthv1.Wait)) (*tilthv1.Job, error) {
	watch := func() error {
		return c.Watch(ctx, request, func(*tilthv1.JobEvent) error { return nil }, func(s *tilthv1.JobStatus) error {
			if waits != nil {
				waits(s.GetWait())
			}
			return nil
		})
	}
	err := watch()
	for agent.History(err) {
		err = watch()
	}
	if err != nil {
		return nil, err
	}
	job, err := c.Job(ctx, request.GetJobId())
	if err == nil && job.GetState() != tilthv1.JobState_JOB_STATE_DONE {
		err = fmt.Errorf("job %s: %s", job.GetId(), cmp.Or(job.GetReason(), "it ended without a result"))
	}
	return job, err
}

// cancelTimeout bounds the cancellation of an abandoned job.
const cancelTimeout = 5 * time.Second

// awaitRun follows a job of this client to its end, and cancels it if ctx ends first; waits is Run.Waits.
func (c *Client) awaitRun(ctx context.Context, id string, waits func(*tilthv1.Wait)) (*tilthv1.Job, error) {
	job, err := c.followRun(ctx, &tilthv1.WatchJobRequest{JobId: id, Attached: true}, waits)
	if ctx.Err() == nil {
		return job, err
	}
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	if _, err := c.Cancel(parting, id, "its client stopped waiting"); err != nil {
		return nil, errors.Join(context.Cause(ctx), err)
	}
	return nil, fmt.Errorf("job %s was cancelled: %w", id, context.Cause(ctx))
}

// Fetch downloads an artifact into a folder and returns its path.
func (c *Client) Fetch(ctx context.Context, ref *tilthv1.ArtifactRef, dir string) (string, error) {
	cache, err := artifact.Open(artifact.Options{Dir: dir, Logger: c.log})
	if err != nil {
		return "", err
	}
	path, _, err := artifact.NewClient(c.conn, cache, c.log).Download(ctx, ref)
	if err != nil {
		return "", c.explain("fetch the "+ref.GetRole(), err)
	}
	return path, nil
}

// chooseRunner returns the device class among the matching devices on which packages of a target run, and the
// device's name if the key is a name.
func chooseRunner(runners []*tilthv1.Agent, key string, t *target.Target) (class, device string, err error) {
	classes := map[string]bool{}
	known, able := false, false
	for _, runner := range runners {
		spec := runner.GetSpec()
		for _, offered := range spec.GetDeviceClasses() {
			if !fits(spec, offered.GetName(), key) {
				continue
			}
			known = true
			if !slices.Contains(spec.GetCapabilities(), wire.RunsPackages) {
				continue
			}
			able = true
			machine, err := target.Decode(offered.GetDescriptor_())
			if err != nil && key == spec.GetName() {
				return "", "", fmt.Errorf("device %s: class %s: %w", spec.GetName(), offered.GetName(), err)
			}
			if err != nil {
				continue // unreadable descriptions are ignored
			}
			if machine.Threads() != t.Threads() || t.RunsOn(machine) != nil {
				continue
			}
			classes[offered.GetName()] = true
			if key == spec.GetName() {
				device = key
			}
		}
	}
	switch {
	case len(classes) == 1:
		for class = range classes {
			return class, device, nil
		}
	case len(classes) > 1:
		return "", "", errors.New("there are several kinds of devices: choose one with --device (see 'tilth devices list')")
	case able:
		return "", "", lacking("no such device runs packages for %s on %d threads: compile the model for one of them (see 'tilth devices show')", t.Model(), t.Threads())
	case known:
		return "", "", lacking("no such device runs packages: it has an emulator, or its runner is of an older version")
	case key == "":
		return "", "", lacking("no device is there: start one with 'tilth runner'")
	}
	return "", "", lacking("no device is %q: see 'tilth devices list'", key)
}

// Watch works like agent.Watch, with refusals explained for people. Errors of visit and status are returned unchanged.
func (c *Client) Watch(ctx context.Context, req *tilthv1.WatchJobRequest, visit func(*tilthv1.JobEvent) error,
	status func(*tilthv1.JobStatus) error,
) error {
	var failure error
	if of := status; of != nil {
		status = func(s *tilthv1.JobStatus) error {
			failure = of(s)
			return failure
		}
	}
	err := agent.Watch(ctx, c.conn, c.log, req, func(event *tilthv1.JobEvent) error {
		failure = visit(event)
		return failure
	}, status)
	if err == nil || failure != nil || ctx.Err() != nil {
		return err
	}
	return c.explain("watch job "+req.GetJobId(), err)
}
