package postgres_test

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// contentOf returns everything of a history that the store interface can read, one line per item, in a deterministic
// order. An error is that of a look-up.
func contentOf(ctx context.Context, s records.Store, h *history) ([]string, error) {
	c := &content{ctx: ctx, s: s}
	c.ofJobs(h)
	c.ofBatches(h)
	c.say("agents", s.Agents(func(a *tilthv1.Agent) { c.message("agent", a, nil) }))
	c.say("devices", s.Devices(func(name string, row *storev1.DeviceRow) { c.message("device "+name, row, nil) }))
	c.ofRecords()
	return c.lines, c.err
}

type content struct {
	ctx   context.Context
	s     records.Store
	lines []string
	err   error
}

// say adds a line, also for items that are not found.
func (c *content) say(what string, err error, values ...any) {
	switch {
	case errors.Is(err, records.ErrNotFound):
		values = []any{"not found"}
	case err != nil:
		c.err = errors.Join(c.err, fmt.Errorf("%s: %w", what, err))
	}
	c.lines = append(c.lines, what+": "+fmt.Sprintln(values...))
}

func (c *content) message(what string, m proto.Message, err error) {
	c.say(what, err, fmt.Sprint(m))
}

func (c *content) ofJobs(h *history) {
	last, err := c.s.LastJobID()
	c.say("last job", err, last)
	page, _, err := c.s.Jobs(records.JobQuery{Max: 1000, MaxBytes: 1 << 30})
	c.say("jobs", err, page)
	open, err := c.s.OpenJobs()
	c.say("open jobs", err, len(open))
	for _, j := range open {
		c.say("open job", nil, j.ID, j.Row, j.Spec, j.Progress, j.LastSequence, j.Damage)
	}
	c.say("ended jobs", c.s.EndedJobs(func(id string, row *storev1.EndedRow) { c.message("ended job "+id, row, nil) }))
	for n := range h.jobs {
		id := jobName(n)
		job, err := c.s.Job(id)
		c.message(id, job, err)
		row, err := c.s.JobRow(id)
		c.message("row of "+id, row, err)
		owner, err := c.s.JobOwner(id)
		c.say("owner of "+id, err, owner)
		byRequest, err := c.s.JobByRequest(ownerOf(n), fmt.Sprint("r", n/2))
		c.say("by request", err, byRequest)
		events, err := c.s.Events(id, 0, 1000)
		c.say("events of "+id, err, events)
	}
}

func (c *content) ofBatches(h *history) {
	open, err := c.s.OpenBatches()
	c.say("open batches", err, len(open))
	for _, b := range open {
		c.say("open batch", nil, b.ID, b.Row, b.Candidates, b.Damage)
	}
	ids, proposals, err := c.s.ClosedJobs()
	c.say("jobs of closed batches", err, ids, proposals)
	for n := range h.jobs {
		for batch := range maxBatches {
			begin := fmt.Sprintf("%s.0%d", jobName(n), batch)
			id, row, err := c.s.ClosedProposal(begin)
			c.say("proposal "+begin, err, id, row)
			row, err = c.s.ClosedBatch(begin + "-life")
			c.message("closed batch "+begin, row, err)
			dead, err := c.s.DeadBatch(begin + "-life")
			if err == nil {
				c.say("dead batch "+begin, nil, dead.Row, dead.Candidates)
			} else {
				c.say("dead batch "+begin, err)
			}
		}
	}
}

func (c *content) ofRecords() {
	groups := map[records.Group]bool{}
	c.say("records", c.s.List(c.ctx, "", "", func(r *tilthv1.Record) error {
		c.message("record", r, nil)
		if of := (records.Group{Target: r.GetTarget(), Workload: r.GetWorkloadDigest()}); !groups[of] {
			groups[of] = true
			for _, level := range levels {
				best, err := c.s.BestAllowed(of.Target, of.Workload, level)
				c.message("best at "+level, best, err)
				known, err := c.s.Known(of.Target, of.Workload, level, "", 1000)
				c.say("known at "+level, err, known.Trials, known.Best, known.CandidateSeconds)
			}
		}
		return nil
	}))
	best, next, err := c.s.BestPage("", "", 1000, 1<<30)
	c.say("page of best", err, best, next)
}
