package tracker_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// grants leases n builds on one builder, with a duration for each owner, and returns their owners.
func (f *timed) grants(n int, took map[string]time.Duration) string {
	f.t.Helper()
	builder := f.joinAs("builder", builderKind)
	var out []string
	for range n {
		w := f.build(builder)
		if w == nil {
			break
		}
		name := strings.TrimRight(string(w.GetBuild().GetCandidates()[0].GetTrace()), "0123456789")
		out = append(out, name)
		if d, ok := took[name]; ok {
			f.beat(builder, d, w.GetLease())
		} else {
			pass(time.Second)
		}
		f.refused(w)
	}
	return strings.Join(out, " ")
}

// TestClassesOfAnAgentTakeTurns is a regression test: an agent only got work of its second class if its first had
// none.
func TestClassesOfAnAgentTakeTurns(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	tuner := f.tuner()
	for _, toolchain := range []string{"clang", "gcc"} {
		s := spec("conv")
		s.Target.Toolchain = toolchain
		f.submit(toolchain, s)
		lease := f.mustLease(tuner).GetLease()
		for n := range 3 {
			f.propose(lease, uint64(n), 0, fmt.Sprint(toolchain, n))
		}
	}
	builder := must[*tilthv1.JoinResponse](t)(f.agents.Join(t.Context(), &tilthv1.JoinRequest{Spec: &tilthv1.AgentSpec{
		Name: "builder", Kind: tilthv1.AgentKind_AGENT_KIND_BUILDER, Toolchains: []string{"clang", "gcc", "clang"},
	}})).GetSession()
	var got []string
	for range 6 {
		got = append(got, f.mustLease(builder).GetBuild().GetTarget().GetToolchain())
	}
	if want := "clang gcc clang gcc clang gcc"; strings.Join(got, " ") != want {
		t.Errorf("built for %v, want %s", got, want)
	}
}

func TestAgentsAreSharedFairly(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    tracker.Config
		submit func(f *timed)
		took   map[string]time.Duration
		n      int
		want   string
	}{
		"an owner of many jobs gets no more than one of one": {
			submit: func(f *timed) {
				f.submitOf("ana", "a", 0, 9)
				f.submitOf("ana", "b", 0, 9)
				f.submitOf("ana", "c", 0, 9)
				f.submitOf("eva", "small", 0, 3)
			},
			n: 6, want: "a small b small c small",
		},
		"an owner's jobs share by priority": {
			submit: func(f *timed) {
				f.submitOf("ana", "low", 10, 9)
				f.submitOf("ana", "high", 30, 9)
			},
			n: 8, want: "high high low high high high high low",
		},
		"owners share by weight": {
			cfg: tracker.Config{Shares: policy.Shares{Owners: map[string]policy.Share{"eva": {Weight: 2}}}},
			submit: func(f *timed) {
				f.submitOf("ana", "a", 100, 9)
				f.submitOf("eva", "e", 1, 9)
			},
			n: 6, want: "e a e e a e",
		},
		"what counts is the time that leases took": {
			submit: func(f *timed) {
				f.submitOf("ana", "slow", 0, 9)
				f.submitOf("eva", "quick", 0, 9)
			},
			took: map[string]time.Duration{"slow": 5 * time.Second},
			n:    8, want: "slow quick quick quick quick quick slow quick",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newTimedAs(t, c.cfg)
				defer func() { f.stop() }()
				c.submit(f)
				if got := f.grants(c.n, c.took); got != c.want {
					t.Errorf("granted %s, want %s", got, c.want)
				}
			})
		})
	}
}
