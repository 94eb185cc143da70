package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tilth-dev/tilth/client"
)

// outageView describes an outage of the farm.
type outageView struct {
	Since  string `json:"since"`
	Until  string `json:"until"`
	Silent int    `json:"silent"`
	Agents int    `json:"agents"`
}

// outage returns the current outage, or nil.
func outage(ctx context.Context, tracker *client.Client) (*outageView, error) {
	o, err := tracker.Outage(ctx)
	if o == nil {
		return nil, err
	}
	return &outageView{
		Since: o.GetSince().AsTime().Format(time.RFC3339), Until: o.GetUntil().AsTime().Format(time.RFC3339),
		Silent: int(o.GetSilent()), Agents: int(o.GetAgents()),
	}, nil
}

// text describes the outage, or returns "".
func (o *outageView) text() string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d agents fell silent at %s; the tracker waits for them until %s", o.Silent, o.Agents, o.Since, o.Until)
}
