package state

import (
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

const (
	// MaxAgentBytes bounds the stored spec of an agent, so that several fit one message.
	MaxAgentBytes = 1 << 20
	// maxHostBytes bounds the host and version strings of a shortened spec.
	maxHostBytes = 256
)

// shorten cuts the spec of an agent that joined before bounds existed, and reports whether it was too large. It keeps
// the first items that fit, and drops labels, which only inform people.
func shorten(spec *tilthv1.AgentSpec) bool {
	if proto.Size(spec) <= MaxAgentBytes && offered(spec) <= wire.MaxOffers {
		return false
	}
	left := MaxAgentBytes / 2
	fits := func(size int) bool {
		if size > left {
			return false
		}
		left -= size
		return true
	}
	short := func(name string) bool { return len(name) <= records.MaxNameBytes && fits(len(name)) }
	spec.Host, spec.Version = clip(spec.GetHost(), maxHostBytes), clip(spec.GetVersion(), maxHostBytes)
	spec.Labels, spec.Sandbox = nil, nil
	spec.Tuners = few(spec.GetTuners(), short)
	spec.Toolchains = few(spec.GetToolchains(), short)
	spec.Capabilities = few(spec.GetCapabilities(), short)
	spec.DeviceClasses = few(spec.GetDeviceClasses(), func(d *tilthv1.DeviceClass) bool {
		return len(d.GetName()) <= records.MaxNameBytes && fits(proto.Size(d))
	})
	return true
}

// few returns the first items that fit.
func few[T any](items []T, fits func(T) bool) (out []T) {
	for _, item := range items {
		if len(out) == wire.MaxOffers {
			break
		}
		if fits(item) {
			out = append(out, item)
		}
	}
	return out
}
