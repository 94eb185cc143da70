package jobclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// TuneOptions configures a job, its search and its progress reports.
type TuneOptions struct {
	// TuneOptions are the options of the job. Target and Machine are set from the device. Without a limit on
	// trials or time, the job runs until it is cancelled.
	Options
	DeviceChoice
	// WeightBits is the size of integer weights, 8 or 4; 0 keeps floats.
	WeightBits int64
	// Patience configures waiting for missing agents; the zero value disables it.
	Patience client.Patience
	// Progress, if set, is called after each change. It may use the tally until it returns.
	Progress func(*progress.Tally)
}

// Result is the result of tuning.
type Result struct {
	progress.Summary
	// Best holds the fastest verified record of each of the job's workloads, from any job, within Numerics.
	// Tasks without one are omitted.
	Best []*tilthv1.Record
}

// partingTime bounds the last calls of an abandoned job.
const partingTime = 10 * time.Second

// Tune tunes models on a farm and returns when the job has ended. If ctx ends, Tune cancels the job and
// returns the measurements so far with the cause. A failed job is an error, too.
func Tune(ctx context.Context, c *client.Client, sources []Source, o TuneOptions) (*Result, error) {
	if o.Patience.Report == nil {
		o.Patience.Report = func(string) {}
	}
	j, err := Submit(ctx, c, Models(sources, o.Numerics, o.WeightBits), o.Options, o.DeviceChoice, &o.Patience)
	if err != nil {
		return nil, err
	}
	return Await(ctx, c, j, o.Progress)
}

// Await follows a submitted job like Tune.
func Await(ctx context.Context, c *client.Client, j *tilthv1.Job, report func(*progress.Tally)) (*Result, error) {
	tally := progress.NewTally(j, References(j.GetSpec()))
	hearing := FollowHooks{}
	if report != nil {
		hearing.Changed = func() { report(tally) }
	}
	failure := Follow(ctx, c, j, tally, hearing)
	if failure == nil && ctx.Err() == nil {
		return ended(ctx, c, j, tally)
	}
	last, done := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	defer done()
	if failure == nil { // it ended before it could be cancelled
		return ended(last, c, j, tally)
	} else if ctx.Err() != nil {
		failure = errors.Join(context.Cause(ctx), end(last, c, j, tally, hearing))
	} else {
		return nil, failure
	}
	r, err := resultOf(last, c, j, tally)
	return r, errors.Join(failure, err)
}

// ended returns the result of a job that has ended by itself.
func ended(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally) (*Result, error) {
	r, err := resultOf(ctx, c, j, tally)
	if err == nil && tally.State == tilthv1.JobState_JOB_STATE_FAILED {
		err = fmt.Errorf("job %s failed: %s", j.GetId(), tally.Reason)
	}
	return r, err
}

// end cancels a job and collects the remaining measurements.
func end(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally, h FollowHooks) error {
	if _, err := c.Cancel(ctx, j.GetId(), "its client gave up"); err != nil {
		return fmt.Errorf("job %s continues: %w", j.GetId(), err)
	}
	return Follow(ctx, c, j, tally, h)
}

func resultOf(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally) (*Result, error) {
	spec := j.GetSpec()
	r := &Result{Summary: tally.Summary()}
	r.Job, r.Target, r.Tracker = j.GetId(), spec.GetTarget().GetFingerprint(), c.Addr()
	var workloads []string
	for _, t := range spec.GetTasks() {
		workloads = append(workloads, t.GetWorkloadDigest())
	}
	var err error
	r.Best, err = c.BestRecords(ctx, r.Target, spec.GetNumerics(), workloads...)
	return r, err
}

// FollowHooks holds callbacks that Follow calls after it has tallied an event. Each may be nil. Follow returns
// the error of a callback.
type FollowHooks struct {
	// Event is called with each event.
	Event func(*tilthv1.JobEvent) error
	// Status is called with the job's status before it is tallied.
	Status func(*tilthv1.JobStatus)
	// Changed is called after the tally has changed.
	Changed func()
	// Restored is called if the tracker's records were restored from a backup, before the job's history is read again.
	Restored func() error
}

// Follow tallies a job's events from the tally's last one to the job's end, across restarts of the tracker.
// When the job's model was read, Follow adds its tasks to j and the tally.
func Follow(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally, h FollowHooks) error {
	for {
		err := follow(ctx, c, j, tally, h)
		if !agent.History(err) {
			return err
		}
		*tally = *progress.NewTally(j, References(j.GetSpec()))
		if h.Restored != nil {
			if err := h.Restored(); err != nil {
				return err
			}
		}
	}
}

func follow(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally, h FollowHooks) error {
	changed := func() {
		if h.Changed != nil {
			h.Changed()
		}
	}
	return c.Watch(ctx, &tilthv1.WatchJobRequest{JobId: j.GetId(), FromSequence: uint64(tally.Events) + 1}, func(event *tilthv1.JobEvent) error {
		tally.Add(event)
		if err := learnTasks(ctx, c, j, tally); err != nil {
			return err
		}
		changed()
		if h.Event == nil {
			return nil
		}
		return h.Event(event)
	}, func(status *tilthv1.JobStatus) error {
		if h.Status != nil {
			h.Status(status)
		}
		tally.Status, tally.StatusAt = status, time.Now()
		changed()
		return nil
	})
}

// learnTasks fetches the tasks of a job's model after it was read.
func learnTasks(ctx context.Context, c *client.Client, j *tilthv1.Job, tally *progress.Tally) error {
	if j.GetSpec().GetModel() == nil || len(tally.Tasks) > 0 || tally.State == tilthv1.JobState_JOB_STATE_READING {
		return nil
	}
	now, err := c.Job(ctx, j.GetId())
	if err != nil {
		return err
	}
	j.Spec, j.Progress = now.GetSpec(), now.GetProgress()
	tally.Begin(j, References(j.GetSpec()))
	return nil
}

// DeviceChoice selects the device of a job.
type DeviceChoice struct {
	// Device is the device's name, its class, or a label (rack=3); it may be empty if all devices are of one kind.
	Device string
	// Threads is the number of threads per kernel; 0 means the device's maximum.
	Threads int
	// Objective is target.Energy, which requires a meter, or empty for latency.
	Objective string
}

// Submit submits a job to a farm that has a device and a builder for it. With patience, it waits until the
// farm can start the job, and fails if that does not happen; with nil, the job may wait in the farm.
func Submit(ctx context.Context, c *client.Client, load Load, o Options, choice DeviceChoice, patience *client.Patience) (*tilthv1.Job, error) {
	if _, err := load(nil); err != nil {
		return nil, err
	}
	var spec *tilthv1.JobSpec
	find := func(ctx context.Context) error {
		device, err := c.FindTarget(ctx, choice.Device, choice.Threads, choice.Objective)
		if err != nil {
			return err
		}
		objective, err := load(device.Target)
		if err != nil {
			return err
		}
		spec = SpecFor(objective, o, device)
		if patience == nil {
			return nil
		}
		return c.CheckFarm(ctx, spec)
	}
	try := find
	if patience != nil {
		try = func(ctx context.Context) error { return patience.Try(ctx, find) }
	}
	if err := try(ctx); err != nil {
		return nil, err
	}
	return c.Submit(ctx, spec)
}

// SpecFor returns the specification of a job for an objective on a device. By default the job is named after its
// models, and searches that do not learn from records ignore them.
func SpecFor(objective *Objective, o Options, d *client.Device) *tilthv1.JobSpec {
	o.Target, o.Machine = d.Target, d.Machine
	o.Name, o.Tuner = cmp.Or(o.Name, objective.Name), cmp.Or(o.Tuner, tuner.Best)
	o.NoTransfer = o.NoTransfer || o.Tuner != tuner.Best
	return NewSpec(objective.Tasks, o)
}

// RequestText returns the request that submits a job, in indented protobuf JSON. Its request_id is derived
// from the job, so that sending it twice creates one job.
func RequestText(spec *tilthv1.JobSpec) ([]byte, error) {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode the job: %w", err)
	}
	digest := sha256.Sum256(encoded)
	text, err := protojson.Marshal(&tilthv1.SubmitJobRequest{RequestId: "spec-" + hex.EncodeToString(digest[:16]), Spec: spec})
	if err != nil {
		return nil, fmt.Errorf("print the job: %w", err)
	}
	// protojson varies its whitespace between builds.
	var compact, indented bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	if err := json.Indent(&indented, compact.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}
