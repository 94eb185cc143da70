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

// Lacking is the error of what a farm cannot do now for want of a device, a builder or a tuner; it does not pass by
// itself soon.
type Lacking struct {
	addr string
	// Message says what is missing, why, and the remedy; one line.
	Message string
}

func lacking(format string, args ...any) error {
	return &Lacking{Message: fmt.Sprintf(format, args...)}
}

// at says of which tracker an error tells.
func (c *Client) at(err error) error {
	var l *Lacking
	if errors.As(err, &l) {
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

// CheckFarm says whether the farm could begin a job; the error is a *Lacking when somebody would have to do something
// first. That others have their turn before, that an agent rests or that one is silent for a while is none. Trackers
// of older versions are not asked.
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
	if w := response.GetWait(); hopeless(w.GetReason()) {
		return &Lacking{addr: c.addr, Message: w.GetMessage()}
	}
	return nil
}

// hopeless says whether a reason to wait passes only when somebody does something, or after a time that nobody knows.
func hopeless(r tilthv1.WaitReason) bool {
	switch r {
	case tilthv1.WaitReason_WAIT_REASON_NO_DEVICE, tilthv1.WaitReason_WAIT_REASON_NO_BUILDER, tilthv1.WaitReason_WAIT_REASON_NO_TUNER,
		tilthv1.WaitReason_WAIT_REASON_CORDONED, tilthv1.WaitReason_WAIT_REASON_QUARANTINED:
		return true
	}
	return false
}

// Patience is for a farm that lacks something.
type Patience struct {
	// Waits for it to come; else the error comes at once.
	Waits bool
	// Most is how long; 0 = as long as it takes.
	Most time.Duration
	// Tell hears what is waited for, whenever that changes.
	Tell func(message string)
}

// askEvery is the time between two looks at a farm that lacks something.
const askEvery = 2 * time.Second

// Try makes an attempt, and others while they fail for want of something that may come.
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
			p.Tell(said)
		}
		select {
		case <-time.After(askEvery):
		case <-over:
			return fmt.Errorf("waited %v: %w", p.Most, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
