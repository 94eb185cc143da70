package tracker_test

import (
	"bytes"
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// TestSessionsAreVisibleToTheirAgentOnly is a regression test: on an open tracker the session is an agent's only
// credential, and all readers could see it.
func TestSessionsAreVisibleToTheirAgentOnly(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r", spec("conv")).GetId()
	tuner, builder := f.tuner(), f.builder()
	runner := f.calibratingRunner().GetSession()
	f.calibrate(runner, 1, 1)
	f.propose(f.mustLease(tuner).GetLease(), 0, 0, "a", "b")
	f.reportBuild(f.buildReport(f.mustLease(builder), "a"))
	work := f.mustLease(runner)
	f.report(work.GetLease(), ok(work.GetMeasure().GetCandidates()[0], 1))
	devices := tilthv1.NewDeviceServiceClient(f.conn)
	answers := map[string]proto.Message{
		"ListAgents":   must[*tilthv1.ListAgentsResponse](t)(f.agents.ListAgents(t.Context(), &tilthv1.ListAgentsRequest{})),
		"GetAgent":     must[*tilthv1.GetAgentResponse](t)(f.agents.GetAgent(t.Context(), &tilthv1.GetAgentRequest{Name: "runner"})),
		"ListDevices":  must[*tilthv1.ListDevicesResponse](t)(devices.ListDevices(t.Context(), &tilthv1.ListDevicesRequest{})),
		"GetDevice":    must[*tilthv1.GetDeviceResponse](t)(devices.GetDevice(t.Context(), &tilthv1.GetDeviceRequest{Name: "runner"})),
		"CordonDevice": must[*tilthv1.CordonDeviceResponse](t)(devices.CordonDevice(t.Context(), &tilthv1.CordonDeviceRequest{Name: "runner"})),
		"ListJobs":     must[*tilthv1.ListJobsResponse](t)(f.jobs.ListJobs(t.Context(), &tilthv1.ListJobsRequest{})),
		"GetJob":       must[*tilthv1.GetJobResponse](t)(f.jobs.GetJob(t.Context(), &tilthv1.GetJobRequest{JobId: job})),
		"ListOwners":   must[*tilthv1.ListOwnersResponse](t)(f.jobs.ListOwners(t.Context(), &tilthv1.ListOwnersRequest{})),
	}
	for _, e := range f.events(job, 1, 4) {
		answers["event "+describe([]*tilthv1.JobEvent{e})] = e
	}
	records := must[grpc.ServerStreamingClient[tilthv1.ListRecordsResponse]](t)(f.records.ListRecords(t.Context(), &tilthv1.ListRecordsRequest{}))
	answers["ListRecords"] = must[*tilthv1.ListRecordsResponse](t)(records.Recv())
	for name, answer := range answers {
		encoded := must[[]byte](t)(proto.Marshal(answer))
		for _, session := range []string{tuner, builder, runner} {
			if bytes.Contains(encoded, []byte(session)) {
				t.Errorf("%s tells a session", name)
			}
		}
	}
}

func TestAuditLogTellsNoSession(t *testing.T) {
	c := newClosed(t, false)
	session, err := c.join("anna", "board")
	c.check(err)
	agents := tilthv1.NewAgentServiceClient(c.as("ben"))
	_, err = agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: session})
	if err == nil {
		t.Error("another's heartbeat is taken")
	}
	_, err = tilthv1.NewAgentServiceClient(c.as("anna")).Leave(t.Context(), &tilthv1.LeaveRequest{Session: session})
	c.check(err)
	if text := must[[]byte](t)(os.ReadFile(c.path("audit.jsonl"))); bytes.Contains(text, []byte(session)) || !bytes.Contains(text, []byte("AgentService.Leave")) {
		t.Errorf("the audit log is %s", text)
	}
}
