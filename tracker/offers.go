package tracker

import (
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"

	"github.com/tilth-dev/tilth/internal/wire"
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

// offersOf returns the classes of work that an agent can be given, each once.
func offersOf(spec *tilthv1.AgentSpec) (out []class) {
	known := map[class]bool{}
	add := func(c class) {
		if !known[c] {
			known[c] = true
			out = append(out, c)
		}
	}
	for _, name := range slices.Concat(spec.GetTuners(), spec.GetToolchains()) {
		add(class{kind: spec.GetKind(), name: name})
	}
	runs := slices.Contains(spec.GetCapabilities(), wire.RunsPackages)
	for _, d := range spec.GetDeviceClasses() {
		add(class{kind: spec.GetKind(), name: d.GetName()})
		if runs {
			add(class{kind: spec.GetKind(), name: d.GetName(), runs: true})
			add(class{kind: spec.GetKind(), name: d.GetName(), runs: true, device: spec.GetName()})
		}
	}
	return out
}
