package tracker

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// ReturnLease implements tilthv1.AgentServiceServer. Handing back what is no longer held changes nothing.
func (t *Tracker) ReturnLease(ctx context.Context, req *tilthv1.ReturnLeaseRequest) (*tilthv1.ReturnLeaseResponse, error) {
	err := t.update(ctx, func(c *change) error {
		if w := c.lookUp(req.GetLease()); w != nil {
			c.giveBack(w, "handed it back")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &tilthv1.ReturnLeaseResponse{}, nil
}

// Leave implements tilthv1.AgentServiceServer. Leaving twice changes nothing.
func (t *Tracker) Leave(ctx context.Context, req *tilthv1.LeaveRequest) (*tilthv1.LeaveResponse, error) {
	err := t.update(ctx, func(c *change) error {
		if a := c.sessions[req.GetSession()]; a != nil {
			c.log.Info("agent left", "agent", a.spec.GetName())
			c.void(a, func(w work) { c.giveBack(w, "left") })
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &tilthv1.LeaveResponse{}, nil
}
