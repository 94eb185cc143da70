package tracker

import (
	"context"
	"time"

	"github.com/tilth-dev/tilth/internal/show"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// expire takes back what was not kept alive: sessions with all their leases, and single leases.
func (t *Tracker) expire(ctx context.Context) {
	now := t.cfg.Now()
	err := t.update(ctx, func(c *change) error {
		for _, a := range c.sessions {
			if now.After(a.deadline) {
				c.log.Warn("agent gone", "agent", a.spec.GetName(), "silent_seconds", now.Sub(a.seen).Seconds())
				c.void(a, c.expireLease)
			}
		}
		for _, l := range c.leases {
			if now.After(l.deadline) {
				c.expireLease(l.work)
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		t.log.Error("expiry not stored", "error", err)
	}
}

func (c *change) expireLease(w work) {
	a := w.held().lease.agent
	c.metrics.expired.WithLabelValues(show.AgentKind(a.spec.GetKind())).Inc()
	c.lose(w, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, "lost contact with "+a.spec.GetName())
}

// graceUntil is when what was held before a restart is lost without a sign of life.
func (t *Tracker) graceUntil() time.Time { return t.cfg.Now().Add(t.cfg.Grace) }
