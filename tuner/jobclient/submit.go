package jobclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/client"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner"
)

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
