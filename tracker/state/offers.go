package state

import (
	"slices"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// offersOf returns the classes of work that an agent accepts, without duplicates.
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
	switch {
	case spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_TUNER && slices.Contains(spec.GetCapabilities(), wire.ReadsModels):
		add(readers)
	case spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_BUILDER && len(spec.GetToolchains()) > 0:
		add(anyBuilder)
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

// offered returns the largest number of toolchains, device classes or tuners in a spec.
func offered(spec *tilthv1.AgentSpec) int {
	return max(len(spec.GetTuners()), len(spec.GetToolchains()), len(spec.GetDeviceClasses()))
}
