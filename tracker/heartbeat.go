package tracker

import (
	"context"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Heartbeat implements tilthv1.AgentServiceServer. It changes nothing on disk: deadlines begin anew after a restart.
func (t *Tracker) Heartbeat(_ context.Context, req *tilthv1.HeartbeatRequest) (*tilthv1.HeartbeatResponse, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, err := t.live(req.GetSession())
	if err != nil {
		return nil, err
	}
	response := &tilthv1.HeartbeatResponse{}
	for _, token := range req.GetLeases() {
		if t.lookUp(token) == nil {
			response.Dropped = append(response.Dropped, token)
			continue
		}
		l := t.leases[token.GetSubject()]
		l.deadline = later(l.deadline, a.seen.Add(t.cfg.LeaseTimeout))
	}
	return response, nil
}
