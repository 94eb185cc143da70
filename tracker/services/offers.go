package services

import (
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// checkOfferCount refuses an agent that offers more than that.
func checkOfferCount(spec *tilthv1.AgentSpec) error {
	for field, n := range map[string]int{
		"spec.tuners": len(spec.GetTuners()), "spec.toolchains": len(spec.GetToolchains()), "spec.device_classes": len(spec.GetDeviceClasses()),
	} {
		if n > wire.MostOffers {
			return invalid(field, "are %d, at most %d will do", n, wire.MostOffers)
		}
	}
	return nil
}

// checkAgentBytes refuses an agent that says too much of itself.
func checkAgentBytes(spec *tilthv1.AgentSpec) error {
	if n := proto.Size(spec); n > state.MostAgentBytes {
		return invalid("spec", "has %d bytes, at most %d will do", n, state.MostAgentBytes)
	}
	return nil
}
