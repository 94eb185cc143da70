package tracker_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// jobPages lists jobs page by page, and checks that none is too large.
func (f *farm) jobPages(size uint32, states ...tilthv1.JobState) (ids []string) {
	f.Helper()
	for request := (&tilthv1.ListJobsRequest{PageSize: size, States: states}); ; {
		page := must[*tilthv1.ListJobsResponse](f)(f.jobs.ListJobs(f.Context(), request))
		if n := len(page.GetJobs()); n > int(size) || proto.Size(page) > 4<<20 {
			f.Errorf("a page of %d has %d jobs, %d bytes", size, n, proto.Size(page))
		}
		for _, j := range page.GetJobs() {
			ids = append(ids, j.GetId())
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return ids
		}
	}
}

func TestJobsAreListedInPagesThatFitAMessage(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	large := spec("conv")
	large.Target.Descriptor_ = []byte(strings.Repeat("x", 600<<10))
	var want []string
	for i := range 9 {
		want = append([]string{f.submit(fmt.Sprint("r", i), large).GetId()}, want...)
	}
	for _, id := range want[:6] {
		must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: id}))
	}
	for _, size := range []uint32{1, 2, 9, 1000} {
		if got := f.jobPages(size); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("pages of %d have %v, want %v", size, got, want)
		}
		if got := f.jobPages(size, tilthv1.JobState_JOB_STATE_QUEUED); fmt.Sprint(got) != fmt.Sprint(want[6:]) {
			t.Errorf("pages of %d have the queued jobs %v, want %v", size, got, want[6:])
		}
		if got := f.jobPages(size, tilthv1.JobState_JOB_STATE_CANCELLED); fmt.Sprint(got) != fmt.Sprint(want[:6]) {
			t.Errorf("pages of %d have the cancelled jobs %v, want %v", size, got, want[:6])
		}
	}
	// A client from before there were pages gets what one message takes: the newest.
	old := must[*tilthv1.ListJobsResponse](t)(f.jobs.ListJobs(t.Context(), &tilthv1.ListJobsRequest{Limit: 100}))
	if n := len(old.GetJobs()); n != 5 || old.GetJobs()[0].GetId() != want[0] || old.GetNextPageToken() != "" {
		t.Errorf("an old client gets %d jobs", n)
	}
	old = must[*tilthv1.ListJobsResponse](t)(f.jobs.ListJobs(t.Context(), &tilthv1.ListJobsRequest{Limit: 2}))
	if n := len(old.GetJobs()); n != 2 {
		t.Errorf("an old client that asks for 2 gets %d jobs", n)
	}
}

func TestAgentsAreListedInPages(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprintf("board-%d", i))
		f.join(want[i], tilthv1.AgentKind_AGENT_KIND_RUNNER)
	}
	f.builder()
	for _, size := range []uint32{0, 1, 3, 7, 8} {
		var got []string
		for request := (&tilthv1.ListAgentsRequest{Kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, PageSize: size}); ; {
			page := must[*tilthv1.ListAgentsResponse](t)(f.agents.ListAgents(t.Context(), request))
			for _, a := range page.GetAgents() {
				got = append(got, a.GetSpec().GetName())
			}
			if n := len(page.GetAgents()); size > 0 && n > int(size) {
				t.Errorf("a page of %d has %d agents", size, n)
			}
			if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("pages of %d have %v, want %v", size, got, want)
		}
	}
}
