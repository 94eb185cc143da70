package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Lacking is returned if the farm lacks a device, a builder or a tuner. It is not transient.
type Lacking struct {
	addr string
	// Message names the missing part, the reason and the remedy, on one line.
	Message string
}

func lacking(format string, args ...any) error {
	return &Lacking{Message: fmt.Sprintf(format, args...)}
}

// at adds the tracker's address to an error.
func (c *Client) at(err error) error {
	if l, ok := errors.AsType[*Lacking](err); ok {
		l.addr = c.addr
		return l
	}
	return fmt.Errorf("tracker %s: %w", c.addr, err)
}

// Error implements error.
func (e *Lacking) Error() string {
	if e.addr == "" {
		return e.Message
	}
	return "tracker " + e.addr + ": " + e.Message
}

// CheckFarm checks whether the farm can start a job. It returns a *Lacking error if that requires an action.
// Queued jobs of others, an agent in cooldown or a short silence are no errors. Older trackers are not asked.
func (c *Client) CheckFarm(ctx context.Context, spec *tilthv1.JobSpec) error {
	target := spec.GetTarget()
	response, err := call(ctx, &tilthv1.CheckFarmRequest{
		DeviceClass: target.GetDeviceClass(), Toolchain: target.GetToolchain(), Tuner: spec.GetTuner(),
		Run: spec.GetRun() != nil, Device: spec.GetRun().GetDevice(), Model: spec.GetModel() != nil,
	}, c.jobs.CheckFarm)
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	if err != nil {
		return c.explain("check the farm", err)
	}
	if w := response.GetWait(); isPermanent(w.GetReason()) {
		return &Lacking{addr: c.addr, Message: w.GetMessage()}
	}
	return nil
}

// isPermanent reports whether a reason to wait only ends by an action or after an unknown time.
func isPermanent(r tilthv1.WaitReason) bool {
	switch r {
	case tilthv1.WaitReason_WAIT_REASON_NO_DEVICE, tilthv1.WaitReason_WAIT_REASON_NO_BUILDER, tilthv1.WaitReason_WAIT_REASON_NO_TUNER,
		tilthv1.WaitReason_WAIT_REASON_CORDONED, tilthv1.WaitReason_WAIT_REASON_QUARANTINED:
		return true
	}
	return false
}

// Patience configures how long to wait for a farm that lacks something.
type Patience struct {
	// Waits enables waiting; otherwise the error is returned immediately.
	Waits bool
	// Most is the maximum wait; 0 means no limit.
	Most time.Duration
	// Report is called with the reason for waiting whenever it changes.
	Report func(message string)
}

// pollInterval is the interval between checks of the farm.
const pollInterval = 2 * time.Second

// Try repeats an attempt while it fails for lack of something that may arrive.
func (p Patience) Try(ctx context.Context, attempt func(context.Context) error) error {
	var over <-chan time.Time
	if p.Most > 0 {
		timer := time.NewTimer(p.Most)
		defer timer.Stop()
		over = timer.C
	}
	for said := ""; ; {
		err := attempt(ctx)
		var l *Lacking
		if !errors.As(err, &l) || !p.Waits {
			return err
		}
		if l.Message != said {
			said = l.Message
			p.Report(said)
		}
		select {
		case <-time.After(pollInterval):
		case <-over:
			return fmt.Errorf("waited %v: %w", p.Most, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
