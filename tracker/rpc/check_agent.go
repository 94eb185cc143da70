package rpc

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

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

// checkOffers refuses offers that do not match the agent's kind.
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
			return invalid(offer.field, "is set, but the agent is a %s", wire.AgentKind(spec.GetKind()))
		}
	}
	for i, d := range spec.GetDeviceClasses() {
		if d.GetName() == "" {
			return invalidItem("spec.device_classes", i, "name", "is empty")
		}
	}
	return nil
}

// checkOfferCount refuses an agent with too many offers.
func checkOfferCount(spec *tilthv1.AgentSpec) error {
	for field, n := range map[string]int{
		"spec.tuners": len(spec.GetTuners()), "spec.toolchains": len(spec.GetToolchains()), "spec.device_classes": len(spec.GetDeviceClasses()),
	} {
		if n > wire.MaxOffers {
			return invalid(field, "are %d, more than the limit of %d", n, wire.MaxOffers)
		}
	}
	return nil
}

// checkAgentBytes refuses a spec that is too large.
func checkAgentBytes(spec *tilthv1.AgentSpec) error {
	if n := proto.Size(spec); n > state.MaxAgentBytes {
		return invalid("spec", "has %d bytes, more than the limit of %d", n, state.MaxAgentBytes)
	}
	return nil
}
