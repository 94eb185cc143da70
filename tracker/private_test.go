package tracker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// byCall makes calls about jobs as Alice and all others as an agent, unless the call's context names a caller.
type byCall map[string]string

var _ credentials.PerRPCCredentials = byCall{}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (tokens byCall) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	if out, _ := metadata.FromOutgoingContext(ctx); len(out.Get("authorization")) > 0 {
		return nil, nil
	}
	who := "board"
	if strings.HasSuffix(uri[0], "JobService") {
		who = "alice"
	}
	return map[string]string{"authorization": "Bearer " + tokens[who]}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (byCall) RequireTransportSecurity() bool { return false }

// sharedFarm is used by Alice, Bob, an admin, a reader and an agent.
type sharedFarm struct {
	*trackerFarm
	tokens byCall
}

func newSharedFarm(t *testing.T) *sharedFarm {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.json")
	f := &sharedFarm{tokens: byCall{}}
	for name, role := range map[string]access.Role{
		"alice": access.Client, "bob": access.Client, "root": access.Admin, "reader": access.ReadOnly, "board": access.Agent,
	} {
		text, _, err := access.CreateToken(path, access.TokenRequest{Name: name, Role: role}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		f.tokens[name] = text
	}
	cfg := tracker.Config{FirstRetry: -1, Security: tracker.Security{Tokens: must[*access.TokenFile](t)(access.OpenTokens(path, slog.New(slog.DiscardHandler), nil))}}
	f.trackerFarm = &trackerFarm{TB: t, dir: t.TempDir(), cfg: cfg, dial: []grpc.DialOption{grpc.WithPerRPCCredentials(f.tokens)}}
	f.start()
	t.Cleanup(func() { f.stop() })
	return f
}

func (f *sharedFarm) as(who string) context.Context {
	return metadata.AppendToOutgoingContext(f.Context(), "authorization", "Bearer "+f.tokens[who])
}

// page returns a page as seen by the named user.
func (f *sharedFarm) page(who, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	r.Header.Set("Authorization", "Bearer "+f.tokens[who])
	w := httptest.NewRecorder()
	f.tracker.HTTPHandler().ServeHTTP(w, r)
	return w
}

// secret is the name of a private job, which no other owner may see.
const secret = "secret-net"

func secretSpec(workloads ...string) *tilthv1.JobSpec {
	s := spec(workloads...)
	s.Name, s.Private = secret, true
	return s
}

// begun returns Alice's private job with a batch leased to a runner, and everything needed to continue.
func (f *sharedFarm) begun() (job string, tuner, builder, runner string, work *tilthv1.LeaseWorkResponse) {
	f.Helper()
	job = f.submit("r1", secretSpec("conv", "dense")).GetId()
	tuner, builder, runner = f.tuner(), f.builder(), f.runner()
	search := f.mustLease(tuner).GetLease()
	f.report(f.leased(search, builder, runner, 0, 1, 0.004))
	return job, tuner, builder, runner, f.proposeAndLease(search, builder, runner, 1, 0)
}

// leased runs a batch of a task and reports its measurement.
func (f *sharedFarm) leased(search *tilthv1.LeaseToken, builder, runner string, n uint64, task uint32, latency float64) (*tilthv1.LeaseToken, *tilthv1.Measurement) {
	f.Helper()
	work := f.proposeAndLease(search, builder, runner, n, task)
	return work.GetLease(), ok(work.GetMeasure().GetCandidates()[0], latency)
}

func TestPrivateJobIsSeenByItsOwnerAndAdminsAlone(t *testing.T) {
	f := newSharedFarm(t)
	job, _, _, _, _ := f.begun()
	watch := func(who, id string) error {
		ctx, cancel := context.WithCancel(f.as(who))
		defer cancel()
		stream, err := f.jobs.WatchJob(ctx, &tilthv1.WatchJobRequest{JobId: id})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	calls := map[string]func(who, id string) error{
		"get": func(who, id string) error {
			_, err := f.jobs.GetJob(f.as(who), &tilthv1.GetJobRequest{JobId: id})
			return err
		},
		"watch": watch,
		"records for it": func(who, id string) error {
			stream, err := f.records.ListRecords(f.as(who), &tilthv1.ListRecordsRequest{JobId: id})
			if err == nil {
				_, err = stream.Recv()
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		},
		"pause": func(who, id string) error {
			_, err := f.jobs.PauseJob(f.as(who), &tilthv1.PauseJobRequest{JobId: id})
			return err
		},
		"resume": func(who, id string) error {
			_, err := f.jobs.ResumeJob(f.as(who), &tilthv1.ResumeJobRequest{JobId: id})
			return err
		},
	}
	none := strings.Replace(job, job[len(job)-1:], "9", 1)
	for _, name := range []string{"get", "watch", "records for it", "pause", "resume"} {
		call := calls[name]
		err, unknown := call("bob", job), call("bob", none)
		if status.Code(err) != codes.NotFound || strings.ReplaceAll(err.Error(), job, none) != unknown.Error() {
			t.Errorf("%s by another: %v; of no job: %v", name, err, unknown)
		}
		for _, who := range []string{"alice", "root"} {
			if err := call(who, job); err != nil {
				t.Errorf("%s by %s: %v", name, who, err)
			}
		}
	}
	if err := watch("board", job); err != nil {
		t.Errorf("an agent, who works for it, watches: %v", err)
	}
	for who, want := range map[string]int{"alice": 1, "root": 1, "bob": 0, "reader": 0, "board": 0} {
		for _, size := range []uint32{0, 10} {
			list, err := f.jobs.ListJobs(f.as(who), &tilthv1.ListJobsRequest{PageSize: size})
			if err != nil || len(list.GetJobs()) != want {
				t.Errorf("%s lists %v, %v", who, list.GetJobs(), err)
			}
		}
	}
}

// TestPrivateJobsOfOthersTakeNoPlaceInListings checks that they neither shorten pages nor end listings.
func TestPrivateJobsOfOthersTakeNoPlaceInListings(t *testing.T) {
	f := newSharedFarm(t)
	shared := f.submit("shared", spec("conv")).GetId()
	var private []string
	for n := range 60 {
		private = append(private, f.submit(fmt.Sprint("r", n), secretSpec("conv")).GetId())
	}
	for _, req := range []*tilthv1.ListJobsRequest{{Limit: 1}, {PageSize: 1}, {PageSize: 20}} {
		list, err := f.jobs.ListJobs(f.as("bob"), req)
		if err != nil || len(list.GetJobs()) != 1 || list.GetJobs()[0].GetId() != shared || slices.Contains(private, list.GetNextPageToken()) {
			t.Errorf("%v is answered with %d jobs, next %q, %v", req, len(list.GetJobs()), list.GetNextPageToken(), err)
		}
	}
	for _, path := range []string{"/", "/jobs"} {
		if w := f.page("bob", path); !strings.Contains(w.Body.String(), shared) {
			t.Errorf("%s lacks the job that is shared: %d", path, w.Code)
		}
	}
}

// TestDeletingAPrivateJobTellsOthersNothing checks that the response is the same as for a missing job.
func TestDeletingAPrivateJobTellsOthersNothing(t *testing.T) {
	f := newSharedFarm(t)
	remove := func(who, id string) error {
		_, err := f.jobs.DeleteJob(f.as(who), &tilthv1.DeleteJobRequest{JobId: id})
		return err
	}
	deleted, ended, open := f.submit("r1", spec("conv")).GetId(), f.submit("r2", secretSpec("conv")).GetId(), f.submit("r3", secretSpec("conv")).GetId()
	for _, id := range []string{deleted, ended} {
		must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(f.Context(), &tilthv1.CancelJobRequest{JobId: id}))
	}
	if err := remove("alice", deleted); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{deleted, ended, open} {
		if err := remove("bob", id); err != nil {
			t.Errorf("another deletes %s: %v", id, err)
		}
	}
	for _, id := range []string{ended, open} {
		if f.job(id).GetSpec().GetName() != secret {
			t.Errorf("%s is not the job that it was", id)
		}
	}
	wantCode(t, "its owner", remove("alice", open), codes.FailedPrecondition, "has not ended")
	wantCode(t, "an admin", remove("root", open), codes.FailedPrecondition, "has not ended")
	if err := remove("root", ended); err != nil {
		t.Error(err)
	}
	if _, err := f.jobs.GetJob(f.Context(), &tilthv1.GetJobRequest{JobId: ended}); status.Code(err) != codes.NotFound {
		t.Errorf("an admin deleted it: %v", err)
	}
}

func TestNoPageOrMetricNamesAPrivateJobToOthers(t *testing.T) {
	f := newSharedFarm(t)
	job, _, _, _, _ := f.begun()
	for _, path := range []string{
		"/", "/jobs", "/devices", "/board", "/device?name=runner", "/metrics", "/jobs/" + job, "/api/v1/jobs", "/api/v1/jobs/" + job,
		"/api/v1/devices", "/api/v1/devices/runner", "/api/v1/owners", "/api/v1/jobs/" + job + "/events",
	} {
		for _, who := range []string{"bob", "reader"} {
			w := f.page(who, path)
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s reads of the job at %s:\n%s", who, path, w.Body)
			}
			if strings.Contains(path, job) && w.Code != http.StatusNotFound {
				t.Errorf("%s gets %d at %s", who, w.Code, path)
			}
		}
	}
	for _, path := range []string{"/jobs", "/jobs/" + job, "/api/v1/devices/runner"} {
		for _, who := range []string{"alice", "root"} {
			if w := f.page(who, path); !strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s reads nothing of the job at %s: %d", who, path, w.Code)
			}
		}
	}
}

// TestFailuresOfPrivateJobsAreHidden checks that everyone can read why an agent has a cooldown, but only that a
// private job caused it.
func TestFailuresOfPrivateJobsAreHidden(t *testing.T) {
	f := newSharedFarm(t)
	job := f.submit("r1", secretSpec("conv")).GetId()
	builder, runner := f.builder(), f.runner()
	search := f.mustLease(f.tuner()).GetLease()
	for n := range uint64(3) {
		f.propose(search, n, 0, "kernel")
		f.reportBuild(f.buildReport(f.mustLease(builder)))
	}
	reason := ""
	for reason == "" {
		must[*tilthv1.ReportMeasurementsResponse](t)(f.measure.ReportMeasurements(f.Context(), &tilthv1.ReportMeasurementsRequest{
			Lease:      f.mustLease(runner).GetLease(),
			InfraError: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, InfraMessage: secret + " does not fit",
		}))
		agent := must[*tilthv1.GetAgentResponse](t)(f.agents.GetAgent(f.as("bob"), &tilthv1.GetAgentRequest{Name: "runner"}))
		reason = agent.GetAgent().GetRestReason()
	}
	if !strings.HasPrefix(reason, "from a private job: ") || !strings.HasSuffix(reason, " leases in a row failed, the last: work of a private job") {
		t.Errorf("it rests %s", reason)
	}
	other := must[*tilthv1.SubmitJobResponse](t)(f.jobs.SubmitJob(f.as("bob"), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv")})).GetJob().GetId()
	for _, path := range []string{
		"/", "/devices", "/device?name=runner", "/jobs/" + other, "/api/v1/jobs/" + other, "/api/v1/agents/runner", "/api/v1/devices/runner",
	} {
		w := f.page("bob", path)
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), secret) || strings.Contains(w.Body.String(), job) {
			t.Errorf("at %s: %d, %s", path, w.Code, w.Body)
		}
	}
}

// latencies returns the latencies of records.
func latencies(rs []*tilthv1.Record) (all []float64) {
	for _, r := range rs {
		all = append(all, r.GetMeasurement().GetLatencySeconds())
	}
	slices.Sort(all)
	return all
}

func (f *sharedFarm) list(who, job string) (all []*tilthv1.Record) {
	f.Helper()
	stream := must[grpc.ServerStreamingClient[tilthv1.ListRecordsResponse]](f)(f.records.ListRecords(f.as(who), &tilthv1.ListRecordsRequest{JobId: job}))
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, r.GetRecord())
	}
}

// TestPrivateRecordsServeTheirOwnerAlone uses a workload with a fast private and a slow shared record. Each reader
// gets the best that they may see.
func TestPrivateRecordsServeTheirOwnerAlone(t *testing.T) {
	f := newSharedFarm(t)
	job, tuner, builder, runner, work := f.begun()
	f.report(work.GetLease(), ok(work.GetMeasure().GetCandidates()[0], 0.001))
	must[*tilthv1.SubmitJobResponse](t)(f.jobs.SubmitJob(f.as("bob"), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv")}))
	f.report(f.leased(f.mustLease(tuner).GetLease(), builder, runner, 0, 0, 0.002))
	target, conv := spec("conv").GetTarget().GetFingerprint(), spec("conv").GetTasks()[0].GetWorkloadDigest()

	for who, want := range map[string]struct {
		conv      float64
		all, list []float64
	}{
		"alice": {0.001, []float64{0.001, 0.004}, []float64{0.001, 0.002, 0.004}},
		"bob":   {0.002, []float64{0.002}, []float64{0.002}}, "root": {0.002, []float64{0.002}, []float64{0.002}},
		"reader": {0.002, []float64{0.002}, []float64{0.002}}, "board": {0.002, []float64{0.002}, []float64{0.002}},
	} {
		best, err := f.records.BestRecords(f.as(who), &tilthv1.BestRecordsRequest{Target: target, WorkloadDigests: []string{conv}})
		if err != nil || !slices.Equal(latencies(best.GetRecords()), []float64{want.conv}) || best.GetRecords()[0].GetTarget() != target {
			t.Errorf("the best for %s is %v, %v", who, best, err)
		}
		for _, of := range []string{"", target} {
			var all []*tilthv1.Record
			for token, first := "", true; first || token != ""; first = false {
				page, err := f.records.BestRecords(f.as(who), &tilthv1.BestRecordsRequest{Target: of, PageSize: 1, PageToken: token})
				if err != nil {
					t.Fatal(err)
				}
				all, token = append(all, page.GetRecords()...), page.GetNextPageToken()
			}
			if !slices.Equal(latencies(all), want.all) {
				t.Errorf("all bests for %s of target %q are %v", who, of, latencies(all))
			}
		}
		if list := f.list(who, ""); !slices.Equal(latencies(list), want.list) || slices.ContainsFunc(list, func(r *tilthv1.Record) bool { return r.GetTarget() != target }) {
			t.Errorf("%s lists %v", who, list)
		}
		groups, err := f.records.ListRecordGroups(f.as(who), &tilthv1.ListRecordGroupsRequest{})
		if err != nil || len(groups.GetGroups()) != 1 || groups.GetGroups()[0].GetRecords() != 1 {
			t.Errorf("%s may exchange %v, %v", who, groups, err)
		}
	}
	if got := latencies(f.list("board", job)); !slices.Equal(got, []float64{0.001, 0.002, 0.004}) {
		t.Errorf("an agent that works for the job lists %v", got)
	}
	if got := latencies(f.list("alice", job)); !slices.Equal(got, []float64{0.001, 0.002, 0.004}) {
		t.Errorf("the owner lists for the job %v", got)
	}
	if got := latencies(f.list("root", job)); !slices.Equal(got, []float64{0.002}) {
		t.Errorf("an admin lists for the job %v", got)
	}
	hidden := "\x01alice\x01" + target
	best, err := f.records.BestRecords(f.as("bob"), &tilthv1.BestRecordsRequest{Target: hidden, WorkloadDigests: []string{conv}})
	if len(best.GetRecords()) > 0 {
		t.Errorf("by the name under which they are kept: %v, %v", best, err)
	}
	for _, path := range []string{"records:best?workloadDigests=" + conv + "&target=", "records?target="} {
		if w := f.page("bob", "/api/v1/"+path+url.QueryEscape(hidden)); strings.Contains(w.Body.String(), "latency") {
			t.Errorf("by that name in JSON: %s", w.Body)
		}
	}
	for who, want := range map[string]struct {
		trials uint32
		best   float64
	}{"alice": {2, 0.001}, "bob": {1, 0.002}} {
		s := secretSpec("conv")
		next := must[*tilthv1.SubmitJobResponse](t)(f.jobs.SubmitJob(f.as(who), &tilthv1.SubmitJobRequest{RequestId: "next", Spec: s})).GetJob()
		if p := next.GetProgress()[0]; p.GetKnownTrials() != want.trials || p.GetKnownBestSeconds() != want.best {
			t.Errorf("the next job of %s knows of %v", who, p)
		}
	}
	s := spec("conv")
	next := must[*tilthv1.SubmitJobResponse](t)(f.jobs.SubmitJob(f.as("alice"), &tilthv1.SubmitJobRequest{RequestId: "open", Spec: s})).GetJob()
	if p := next.GetProgress()[0]; p.GetKnownTrials() != 1 || p.GetKnownBestSeconds() != 0.002 {
		t.Errorf("a shared job of the owner, which all see, knows of %v", p)
	}
}

// countedStore counts single look-ups of best records.
type countedStore struct {
	records.Store
	asked *atomic.Int64
}

// BestAllowed implements records.Measurements.
func (s countedStore) BestAllowed(target, workload, numerics string) (*tilthv1.Record, error) {
	s.asked.Add(1)
	return s.Store.BestAllowed(target, workload, numerics)
}

// TestBestsArePagedWithoutPrivateRecords checks that other callers get the store's page of bests unchanged.
func TestBestsArePagedWithoutPrivateRecords(t *testing.T) {
	f := newSharedFarm(t)
	_, tuner, builder, runner, work := f.begun()
	f.report(work.GetLease(), ok(work.GetMeasure().GetCandidates()[0], 0.001))
	must[*tilthv1.SubmitJobResponse](t)(f.jobs.SubmitJob(f.as("bob"), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv")}))
	f.report(f.leased(f.mustLease(tuner).GetLease(), builder, runner, 0, 0, 0.002))
	f.stop()
	var asked atomic.Int64
	f.open = func(path string) (records.Store, error) {
		s, err := openFile(path)
		return countedStore{Store: s, asked: &asked}, err
	}
	f.start()
	for _, c := range []struct {
		who     string
		records int
		asks    bool
	}{{"bob", 1, false}, {"reader", 1, false}, {"alice", 2, true}} {
		asked.Store(0)
		count := 0
		for token, first := "", true; first || token != ""; first = false {
			page := must[*tilthv1.BestRecordsResponse](t)(f.records.BestRecords(f.as(c.who), &tilthv1.BestRecordsRequest{PageToken: token}))
			count, token = count+len(page.GetRecords()), page.GetNextPageToken()
		}
		if count != c.records || (asked.Load() > 0) != c.asks {
			t.Errorf("%s gets %d bests, for %d look-ups", c.who, count, asked.Load())
		}
	}
}

func TestPrivateJobsRequireAuthentication(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	_, err := f.jobs.SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: secretSpec("conv")})
	wantCode(t, "a private job", err, codes.FailedPrecondition, "private jobs require authentication")
}

// forgetful is a store whose next look-up of a job's owner fails on demand.
type forgetful struct {
	records.Store
	forgets *atomic.Bool
}

// JobOwner implements records.Store.
func (s forgetful) JobOwner(id string) (records.Owner, error) {
	if s.forgets.CompareAndSwap(true, false) {
		return records.Owner{}, fmt.Errorf("look up: %w", records.ErrAway)
	}
	return s.Store.JobOwner(id)
}

// TestJobsOfUnknownOwnersCannotBeDeleted is a regression test: anyone could delete a job if the look-up of its owner
// failed.
func TestJobsOfUnknownOwnersCannotBeDeleted(t *testing.T) {
	f := newSharedFarm(t)
	job := must[*tilthv1.SubmitJobResponse](t)(f.jobs.SubmitJob(f.as("alice"), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv")})).GetJob().GetId()
	must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(f.as("alice"), &tilthv1.CancelJobRequest{JobId: job}))
	f.stop()
	var forgets atomic.Bool
	f.open = func(path string) (records.Store, error) {
		s, err := openFile(path)
		return forgetful{s, &forgets}, err
	}
	f.start()
	for _, c := range []struct {
		who  string
		code codes.Code
		text string
	}{
		{"bob", codes.Unavailable, "try again later"}, {"alice", codes.Unavailable, "try again later"}, {"root", codes.OK, ""},
	} {
		forgets.Store(true)
		_, err := f.jobs.DeleteJob(f.as(c.who), &tilthv1.DeleteJobRequest{JobId: job})
		wantCode(t, c.who, err, c.code, c.text)
	}
}
