package state

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestRunsQueueOnlyForMatchingAgents is a regression test: every request for work skipped all runs for other runners
// one by one, and so did all waiting requests at each new run.
func TestRunsQueueOnlyForMatchingAgents(t *testing.T) {
	runner := func(name string, capabilities ...string) []class {
		return offersOf(&tilthv1.AgentSpec{
			Name: name, Kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, Capabilities: capabilities,
			DeviceClasses: []*tilthv1.DeviceClass{{Name: "arm64/4"}, {Name: "arm64/4"}},
		})
	}
	run := func(device string) class {
		return (&job{spec: &tilthv1.JobSpec{
			Target: &tilthv1.TargetSpec{DeviceClass: "arm64/4"}, Run: &tilthv1.RunSpec{Device: device},
		}}).class()
	}
	tuned := (&batch{job: &job{spec: &tilthv1.JobSpec{Target: &tilthv1.TargetSpec{DeviceClass: "arm64/4"}}}}).class()
	for _, c := range []struct {
		name  string
		offer []class
		want  []class
	}{
		{"board-7", runner("board-7", wire.RunsPackages), []class{tuned, run(""), run("board-7")}},
		{"board-8", runner("board-8", wire.RunsPackages), []class{tuned, run(""), run("board-8")}},
		{"one that runs nothing", runner("board-9"), []class{tuned}},
	} {
		if !slices.Equal(c.offer, c.want) {
			t.Errorf("%s looks for %v, want %v", c.name, c.offer, c.want)
		}
	}
}
