package tuning

import (
	"cmp"
	"context"

	"github.com/tilth-dev/tilth/client"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner"
	"github.com/tilth-dev/tilth/tuning/job"
)

// Wish is the device that a job is for.
type Wish struct {
	// Device is the device's name, its class, or a label (rack=3); empty where all devices of the farm are of one
	// kind.
	Device string
	// Threads is how many threads kernels run on; 0 is as many as the device offers.
	Threads int
	// Objective is target.Energy, for which the device needs a meter, or empty for latency.
	Objective string
}

// Submit hands a job in to a farm that has a device and a builder for it. With patience it waits until the farm can
// begin it, and fails if that does not come; without (nil) the job may wait in the farm.
func Submit(ctx context.Context, c *client.Client, load Load, o job.Options, wish Wish, patience *client.Patience) (*tilthv1.Job, error) {
	if _, err := load(nil); err != nil {
		return nil, err
	}
	var spec *tilthv1.JobSpec
	find := func(ctx context.Context) error {
		device, err := c.FindTarget(ctx, wish.Device, wish.Threads, wish.Objective)
		if err != nil {
			return err
		}
		objective, err := load(device.Target)
		if err != nil {
			return err
		}
		spec = Spec(objective, o, device)
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

// Spec is the job for an objective on a device: it is named after its models unless it has a name, and searches that
// do not learn from earlier records pass over them.
func Spec(objective *Objective, o job.Options, d *client.Device) *tilthv1.JobSpec {
	o.Target, o.Machine = d.Target, d.Machine
	o.Name, o.Tuner = cmp.Or(o.Name, objective.Name), cmp.Or(o.Tuner, tuner.Best)
	o.NoTransfer = o.NoTransfer || o.Tuner != tuner.Best
	return job.Spec(objective.Tasks, o)
}
