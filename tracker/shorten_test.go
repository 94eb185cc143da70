package tracker_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/state"
)

// store writes to the farm's records file while no tracker runs, like an earlier version.
func (f *trackerFarm) store(fills ...func(w *records.Write)) {
	f.Helper()
	f.stop()
	db := must[*bolt.DB](f)(bolt.Open(filepath.Join(f.dir, "records.db"), bolt.Options{}))
	for _, fill := range fills {
		w := &records.Write{}
		fill(w)
		if err := db.Commit(w).Wait(f.Context()); err != nil {
			f.Error(err)
		}
	}
	if err := db.Close(); err != nil {
		f.Error(err)
	}
	f.start()
}

// manyToolchains returns a builder with unrealistically many toolchains.
func manyToolchains(name string, n int) *tilthv1.AgentSpec {
	s := agentSpec(name, tilthv1.AgentKind_AGENT_KIND_BUILDER)
	for i := range n {
		s.Toolchains = append(s.Toolchains, fmt.Sprintf("clang-%06d", i))
	}
	return s
}

// TestAgentOffersABoundedNumberOfClasses is a regression test: one Join with 120,000 toolchains held the lock for
// 17 s, and again at each start.
func TestAgentOffersABoundedNumberOfClasses(t *testing.T) {
	f := newFarm(t, tracker.Config{Limits: state.Limits{Classes: 600}})
	join := func(s *tilthv1.AgentSpec) error {
		_, err := f.agents.Join(t.Context(), &tilthv1.JoinRequest{Spec: s})
		return err
	}
	wantStatus(t, join(manyToolchains("all", 30_000)), codes.InvalidArgument, "", "spec.toolchains")
	large := agentSpec("large", tilthv1.AgentKind_AGENT_KIND_BUILDER)
	large.Labels = map[string]string{"l": strings.Repeat("x", 1<<19)}
	wantStatus(t, join(large), codes.InvalidArgument, "", "spec")
	for n := range 3 {
		s := manyToolchains(fmt.Sprint("builder ", n), 200)
		for i := range s.Toolchains {
			s.Toolchains[i] += fmt.Sprint(" of ", n)
		}
		if err := join(s); n < 2 && err != nil {
			t.Error(err)
		} else if n == 2 {
			wantOverload(t, err, "toolchains, device classes and tuners, and no room for more")
		}
	}
}

// TestFileWithAgentsThatAreTooLargeIsRecoveredAndListed is a regression test: twenty oversized agents created a file
// of 1.6 GB and broke all listings.
func TestFileWithAgentsThatAreTooLargeIsRecoveredAndListed(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	large := agentSpec("large", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	large.Labels = map[string]string{"rack": strings.Repeat("x", 8<<20)}
	large.DeviceClasses = append(large.DeviceClasses, &tilthv1.DeviceClass{Name: "huge", Descriptor_: make([]byte, 8<<20)})
	now := timestamppb.Now()
	f.store(func(w *records.Write) {
		for _, s := range []*tilthv1.AgentSpec{manyToolchains("many", 120_000), large} {
			w.PutAgent(&tilthv1.Agent{Spec: s, Session: s.GetName(), JoinedAt: now, SeenAt: now})
		}
	})
	for range 2 { // a shortened spec stays unchanged
		list := must[*tilthv1.ListAgentsResponse](t)(f.agents.ListAgents(t.Context(), &tilthv1.ListAgentsRequest{}))
		if got := list.GetAgents(); len(got) != 2 || !got[0].GetTruncated() || !got[1].GetTruncated() || proto.Size(list) > 3<<20 {
			t.Fatalf("%d agents are listed in %d bytes", len(got), proto.Size(list))
		}
		if n := len(list.GetAgents()[1].GetSpec().GetToolchains()); n == 0 || n > 256 {
			t.Errorf("%d toolchains are kept", n)
		}
		if got := list.GetAgents()[0].GetSpec().GetDeviceClasses(); len(got) != 1 {
			t.Errorf("%d device classes are kept, want only the small one", len(got))
		}
		must[*tilthv1.HeartbeatResponse](t)(f.agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: "large"}))
		f.restart()
	}
}

// TestAgentsThatAreGoneAreBounded is a regression test: any number of device names was stored for a week, and their
// state forever.
func TestAgentsThatAreGoneAreBounded(t *testing.T) {
	f := newFarm(t, tracker.Config{Limits: state.Limits{Gone: 5}})
	devices := tilthv1.NewDeviceServiceClient(f.conn)
	for n := range 20 {
		session := f.join(fmt.Sprintf("board-%02d", n), tilthv1.AgentKind_AGENT_KIND_RUNNER)
		if n == 0 {
			must[*tilthv1.CordonDeviceResponse](t)(devices.CordonDevice(t.Context(), &tilthv1.CordonDeviceRequest{Name: "board-00", Reason: "broken"}))
		}
		must[*tilthv1.LeaveResponse](t)(f.agents.Leave(t.Context(), &tilthv1.LeaveRequest{Session: session}))
	}
	f.join("board-20", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	want := "[board-15 board-16 board-17 board-18 board-19 board-20]"
	for range 2 {
		if got := fmt.Sprint(f.agentNames(0, 0)); got != want {
			t.Errorf("%s are known, want %s", got, want)
		}
		if got := fmt.Sprint(f.deviceNames(0)); got != want {
			t.Errorf("the devices %s are known, want %s", got, want)
		}
		f.restart()
	}
	f.join("board-00", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	got := must[*tilthv1.GetDeviceResponse](t)(tilthv1.NewDeviceServiceClient(f.conn).GetDevice(t.Context(), &tilthv1.GetDeviceRequest{Name: "board-00"}))
	if got.GetDevice().GetCordon().GetReason() != "broken" {
		t.Errorf("a cordon was removed with its runner: %v", got)
	}
}
