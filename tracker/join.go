package tracker

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/access"
	"github.com/tilth-dev/tilth/internal/wire/names"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Join implements tilthv1.AgentServiceServer.
func (t *Tracker) Join(ctx context.Context, req *tilthv1.JoinRequest) (*tilthv1.JoinResponse, error) {
	spec := req.GetSpec()
	if err := checkAgent(spec); err != nil {
		return nil, err
	}
	session := rand.Text()
	a := newAgent(spec, session)
	calibrate := false
	var interval time.Duration
	caller, _ := access.From(ctx)
	err := t.update(ctx, func(c *change) error {
		if err := cmp.Or(c.checkTakeover(spec.GetName(), caller.Name), c.roomForAgent(a)); err != nil {
			return err
		}
		a.joined, a.identity = c.now(), caller.Name
		c.keepAlive(a)
		if old := c.agents[spec.GetName()]; old != nil {
			if !old.gone {
				c.void(old, func(w work) {
					c.lose(w, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, fmt.Sprintf("%s joined anew", spec.GetName()))
				})
			}
			a.rest = old.rest
		}
		c.admit(a)
		c.forgetOldest()
		calibrate, interval = c.rejoined(a), c.heartbeatInterval()
		c.write.PutAgent(a.proto())
		c.log.Info("agent joined", "agent", spec.GetName(), "kind", names.AgentKind(spec.GetKind()), "version", spec.GetVersion())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &tilthv1.JoinResponse{Session: session, HeartbeatInterval: durationpb.New(interval), Calibrate: calibrate}, nil
}

// checkTakeover refuses the name of an agent that another identity joined as, while it lives: its leases would be
// lost. A board that is set up anew, under another identity, has its name when the old session is gone.
func (c *change) checkTakeover(name, identity string) error {
	old := c.agents[name]
	if old == nil || old.gone || old.identity == identity {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "agent %q is joined by another identity: choose another --name, or stop the other", name)
}

func checkAgent(spec *tilthv1.AgentSpec) error {
	if err := checkName("spec.name", spec.GetName()); err != nil {
		return err
	}
	switch spec.GetKind() {
	case tilthv1.AgentKind_AGENT_KIND_TUNER:
		if len(spec.GetTuners()) == 0 {
			return invalid("spec.tuners", "is empty: a tuner offers at least one")
		}
	case tilthv1.AgentKind_AGENT_KIND_BUILDER:
		if len(spec.GetToolchains()) == 0 {
			return invalid("spec.toolchains", "is empty: a builder offers at least one")
		}
	case tilthv1.AgentKind_AGENT_KIND_RUNNER:
		if len(spec.GetDeviceClasses()) == 0 {
			return invalid("spec.device_classes", "is empty: a runner offers at least one")
		}
	default:
		return invalid("spec.kind", "is %v", spec.GetKind())
	}
	return cmp.Or(checkAgentBytes(spec), checkOfferCount(spec), checkOffers(spec))
}

// checkOffers refuses an agent that offers what its kind cannot do.
func checkOffers(spec *tilthv1.AgentSpec) error {
	for _, offer := range []struct {
		field string
		count int
		kind  tilthv1.AgentKind
	}{
		{"spec.tuners", len(spec.GetTuners()), tilthv1.AgentKind_AGENT_KIND_TUNER},
		{"spec.toolchains", len(spec.GetToolchains()), tilthv1.AgentKind_AGENT_KIND_BUILDER},
		{"spec.device_classes", len(spec.GetDeviceClasses()), tilthv1.AgentKind_AGENT_KIND_RUNNER},
	} {
		if offer.count > 0 && spec.GetKind() != offer.kind {
			return invalid(offer.field, "is set, but the agent is a %s", names.AgentKind(spec.GetKind()))
		}
	}
	for i, d := range spec.GetDeviceClasses() {
		if d.GetName() == "" {
			return invalidItem("spec.device_classes", i, "name", "is empty")
		}
	}
	return nil
}
