package tracker_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// jobPages lists jobs page by page, and checks the size of each page.
func (f *trackerFarm) jobPages(size uint32, states ...tilthv1.JobState) (ids []string) {
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
	var layers []string
	for i := range 150 {
		layers = append(layers, fmt.Sprintf("%04096d", i))
	}
	large := spec(layers...)
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
	// A client without support for pages gets the newest jobs that fit into a message.
	old := must[*tilthv1.ListJobsResponse](t)(f.jobs.ListJobs(t.Context(), &tilthv1.ListJobsRequest{Limit: 100}))
	if n := len(old.GetJobs()); n != 5 || old.GetJobs()[0].GetId() != want[0] || old.GetNextPageToken() == "" {
		t.Errorf("an old client gets %d jobs", n)
	}
	old = must[*tilthv1.ListJobsResponse](t)(f.jobs.ListJobs(t.Context(), &tilthv1.ListJobsRequest{Limit: 2}))
	if n := len(old.GetJobs()); n != 2 {
		t.Errorf("an old client that asks for 2 gets %d jobs", n)
	}
}

// names lists names page by page, and checks the size of each page.
func names[M interface {
	proto.Message
	GetNextPageToken() string
}](f *trackerFarm, size uint32, list func(token string) (M, error), named func(M) []string) (all []string) {
	f.Helper()
	for token := ""; ; {
		page := must[M](f)(list(token))
		some := named(page)
		if size > 0 && len(some) > int(size) || proto.Size(page) > 4<<20 {
			f.Errorf("a page of %d has %d items, %d bytes", size, len(some), proto.Size(page))
		}
		all = append(all, some...)
		if token = page.GetNextPageToken(); token == "" {
			return all
		}
	}
}

func (f *trackerFarm) agentNames(size uint32, kind tilthv1.AgentKind) []string {
	f.Helper()
	return names(f, size, func(token string) (*tilthv1.ListAgentsResponse, error) {
		return f.agents.ListAgents(f.Context(), &tilthv1.ListAgentsRequest{Kind: kind, PageSize: size, PageToken: token})
	}, func(page *tilthv1.ListAgentsResponse) (all []string) {
		for _, a := range page.GetAgents() {
			all = append(all, a.GetSpec().GetName())
		}
		return all
	})
}

func (f *trackerFarm) deviceNames(size uint32) []string {
	f.Helper()
	devices := tilthv1.NewDeviceServiceClient(f.conn)
	return names(f, size, func(token string) (*tilthv1.ListDevicesResponse, error) {
		return devices.ListDevices(f.Context(), &tilthv1.ListDevicesRequest{PageSize: size, PageToken: token})
	}, func(page *tilthv1.ListDevicesResponse) (all []string) {
		for _, d := range page.GetDevices() {
			all = append(all, d.GetAgent().GetSpec().GetName())
		}
		return all
	})
}

func (f *trackerFarm) ownerNames(size uint32) []string {
	f.Helper()
	return names(f, size, func(token string) (*tilthv1.ListOwnersResponse, error) {
		return f.jobs.ListOwners(f.Context(), &tilthv1.ListOwnersRequest{PageSize: size, PageToken: token})
	}, func(page *tilthv1.ListOwnersResponse) (all []string) {
		for _, o := range page.GetOwners() {
			all = append(all, o.GetName())
		}
		return all
	})
}

func TestAgentsDevicesAndOwnersAreListedInPages(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	var boards, owners []string
	for i := range 7 {
		boards = append(boards, fmt.Sprintf("board-%d", i))
		f.join(boards[i], tilthv1.AgentKind_AGENT_KIND_RUNNER)
		owners = append(owners, strings.Repeat("o", i)) // the first has no name
		must[*tilthv1.SubmitJobResponse](t)(f.jobs.SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{RequestId: fmt.Sprint(i), Spec: specOf(owners[i], 1)}))
	}
	f.builder()
	for _, size := range []uint32{0, 1, 3, 7, 8} {
		for of, got := range map[string][]string{"agents": f.agentNames(size, tilthv1.AgentKind_AGENT_KIND_RUNNER), "devices": f.deviceNames(size)} {
			if !slices.Equal(got, boards) {
				t.Errorf("pages of %d %s have %v, want %v", size, of, got, boards)
			}
		}
		if got := f.ownerNames(size); !slices.Equal(got, owners) {
			t.Errorf("pages of %d owners have %q, want %q", size, got, owners)
		}
	}
}

// TestFarmOfManyDevicesIsListed checks that each message fits a connection, although the whole list would not.
func TestFarmOfManyDevicesIsListed(t *testing.T) {
	many := quickOr(2500, 10_000)
	f := newFarm(t, tracker.Config{})
	f.joinMany(many)
	for of, got := range map[string][]string{"agents": f.agentNames(5000, 0), "devices": f.deviceNames(5000)} {
		if len(got) != many || !slices.IsSorted(got) {
			t.Errorf("%d %s are listed, want %d in order", len(got), of, many)
		}
	}
}

// TestBestRecordsAreListedInPagesThatFitAMessage is a regression test: an old client that requested all best records
// got an oversized message.
func TestBestRecordsAreListedInPagesThatFitAMessage(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	var want []string
	f.store(func(w *records.Write) {
		for i := range 9 {
			r := record(fmt.Sprint("candidate ", i), int64(i))
			r.Workload = bytes.Repeat([]byte{byte('a' + i)}, 600<<10)
			r.WorkloadDigest = records.Digest(r.GetWorkload())
			want = append(want, r.GetWorkloadDigest())
			w.AddRecord(r)
		}
	})
	target := record("x", 0).GetTarget()
	digests := slices.Clone(want)
	slices.Sort(want)
	for name, request := range map[string]*tilthv1.BestRecordsRequest{
		"all, of an old client": {}, "all": {PageSize: 1000}, "of a target": {Target: target, PageSize: 4},
		"of workloads": {Target: target, WorkloadDigests: digests, PageSize: 1000},
	} {
		got := names(f, request.GetPageSize(), func(token string) (*tilthv1.BestRecordsResponse, error) {
			request.PageToken = token
			return f.records.BestRecords(t.Context(), request)
		}, func(page *tilthv1.BestRecordsResponse) (all []string) {
			for _, r := range page.GetRecords() {
				all = append(all, r.GetWorkloadDigest())
			}
			return all
		})
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %d records are listed, want %d", name, len(got), len(want))
		}
	}
	_, err := f.records.BestRecords(t.Context(), &tilthv1.BestRecordsRequest{Target: target, WorkloadDigests: digests, PageToken: "garbage"})
	wantStatus(t, err, codes.InvalidArgument, "", "page_token")
}
