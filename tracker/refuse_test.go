package tracker_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// tooLong exceeds the maximum key size of the store. If it were stored, all later writes would fail.
var tooLong = strings.Repeat("n", 40000)

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func record(name string, second int64) *tilthv1.Record {
	c := candidates(name)[0]
	m := ok(c, 0.5)
	m.Candidate = c
	m.At = timestamppb.New(time.Unix(second, 0))
	return &tilthv1.Record{Target: "cpu-1", WorkloadDigest: records.Digest([]byte("w")), Measurement: m}
}

func TestBadJobsAreRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	for name, c := range map[string]struct {
		spoil func(*tilthv1.SubmitJobRequest)
		want  string
	}{
		"no request id":   {func(r *tilthv1.SubmitJobRequest) { r.RequestId = "" }, "request_id: is empty"},
		"long request id": {func(r *tilthv1.SubmitJobRequest) { r.RequestId = tooLong }, "request_id: has 40000 bytes, more than the limit of 256"},
		"long target":     {func(r *tilthv1.SubmitJobRequest) { r.Spec.Target.Fingerprint = tooLong }, "spec.target.fingerprint: has 40000 bytes"},
		"no spec":         {func(r *tilthv1.SubmitJobRequest) { r.Spec = nil }, "spec.name: is empty"},
		"no target":       {func(r *tilthv1.SubmitJobRequest) { r.Spec.Target = nil }, "spec.target.fingerprint: is empty"},
		"zero byte":       {func(r *tilthv1.SubmitJobRequest) { r.Spec.Target.Fingerprint = "a\x00b" }, "spec.target.fingerprint: holds a zero byte"},
		"no tuner":        {func(r *tilthv1.SubmitJobRequest) { r.Spec.Tuner = "" }, "spec.tuner: is empty"},
		"odd numerics":    {func(r *tilthv1.SubmitJobRequest) { r.Spec.Numerics = "wild" }, `spec.numerics: is "wild", not strict, default or fast`},
		"no budget":       {func(r *tilthv1.SubmitJobRequest) { r.Spec.Budget = nil }, "spec.budget: has neither trials nor time"},
		"time before now": {func(r *tilthv1.SubmitJobRequest) { r.Spec.Budget.Time = durationpb.New(-5) }, "spec.budget.time: is -5ns"},
		"no time":         {func(r *tilthv1.SubmitJobRequest) { r.Spec.Budget.Time = durationpb.New(0) }, "spec.budget.time: is 0s"},
		"time for ever":   {func(r *tilthv1.SubmitJobRequest) { r.Spec.Budget.Time = &durationpb.Duration{Seconds: 1 << 62} }, "spec.budget.time: is "},
		"no tasks":        {func(r *tilthv1.SubmitJobRequest) { r.Spec.Tasks = nil }, "spec.tasks: is empty"},
		"empty workload":  {func(r *tilthv1.SubmitJobRequest) { r.Spec.Tasks[1].Workload = nil }, "spec.tasks[1].workload: is empty"},
		"wrong digest":    {func(r *tilthv1.SubmitJobRequest) { r.Spec.Tasks[0].Workload = []byte("x") }, "spec.tasks[0].workload_digest: "},
		"negative limit":  {func(r *tilthv1.SubmitJobRequest) { r.Spec.Tasks[0].LeastSeconds = -1 }, "spec.tasks[0].least_seconds: is -1"},
		"negative weight": {func(r *tilthv1.SubmitJobRequest) { r.Spec.Tasks[0].Weight = -1 }, "spec.tasks[0].weight: is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv", "pool")}
			c.spoil(r)
			_, err := f.jobs.SubmitJob(t.Context(), r)
			wantStatus(t, err, codes.InvalidArgument, "", c.want)
		})
	}
}

func TestBadAgentsAreRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	runner := tilthv1.AgentKind_AGENT_KIND_RUNNER
	for name, c := range map[string]struct {
		spec *tilthv1.AgentSpec
		want string
	}{
		"no spec":      {nil, "spec.name: is empty"},
		"long name":    {&tilthv1.AgentSpec{Name: tooLong, Kind: runner, DeviceClasses: []*tilthv1.DeviceClass{{Name: "x"}}}, "spec.name: has 40000 bytes"},
		"no kind":      {&tilthv1.AgentSpec{Name: "a"}, "spec.kind: is AGENT_KIND_UNSPECIFIED"},
		"no device":    {&tilthv1.AgentSpec{Name: "a", Kind: runner}, "spec.device_classes: is empty"},
		"no name":      {&tilthv1.AgentSpec{Name: "a", Kind: runner, DeviceClasses: []*tilthv1.DeviceClass{{}}}, "spec.device_classes[0].name: is empty"},
		"wrong offers": {&tilthv1.AgentSpec{Name: "a", Kind: runner, DeviceClasses: []*tilthv1.DeviceClass{{Name: "x"}}, Tuners: []string{"ga"}}, "spec.tuners: is set, but the agent is a runner"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.agents.Join(t.Context(), &tilthv1.JoinRequest{Spec: c.spec})
			wantStatus(t, err, codes.InvalidArgument, "", c.want)
		})
	}
	_, err := f.agents.LeaseWork(t.Context(), &tilthv1.LeaseWorkRequest{Session: f.tuner(), Wait: seconds(61)})
	wantStatus(t, err, codes.InvalidArgument, "", "wait: is 1m1s")
	_, err = f.agents.GetAgent(t.Context(), &tilthv1.GetAgentRequest{Name: "nobody"})
	wantStatus(t, err, codes.NotFound, "", `agent "nobody" does not exist`)
}

func TestBadProposalsAreRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.submit("r1", spec("conv"))
	lease := f.mustLease(f.tuner()).GetLease()
	for name, c := range map[string]struct {
		request *tilthv1.ProposeBatchRequest
		code    codes.Code
		want    string
	}{
		"no candidates": {&tilthv1.ProposeBatchRequest{}, codes.InvalidArgument, "candidates: is empty"},
		"no trace":      {&tilthv1.ProposeBatchRequest{Candidates: []*tilthv1.Candidate{{}}}, codes.InvalidArgument, "candidates[0].trace: is empty"},
		"no share":      {&tilthv1.ProposeBatchRequest{Candidates: []*tilthv1.Candidate{{Trace: []byte("x"), Digest: records.Digest([]byte("x")), Multiplications: 2}}}, codes.InvalidArgument, "candidates[0].multiplications: is 2"},
		"wrong digest":  {&tilthv1.ProposeBatchRequest{Candidates: []*tilthv1.Candidate{{Trace: []byte("x"), Digest: "y"}}}, codes.InvalidArgument, "candidates[0].digest: "},
		"twice":         {&tilthv1.ProposeBatchRequest{Candidates: candidates("a", "a")}, codes.InvalidArgument, "is in the batch twice"},
		"no such task":  {&tilthv1.ProposeBatchRequest{TaskIndex: 1, Candidates: candidates("a")}, codes.InvalidArgument, "task_index: is 1"},
		"no time":       {&tilthv1.ProposeBatchRequest{Candidates: candidates("a"), SearchSeconds: -1}, codes.InvalidArgument, "search_seconds: is -1"},
		"a prediction too many": {&tilthv1.ProposeBatchRequest{Candidates: candidates("a"), PredictedSeconds: []float32{1, 2}}, codes.InvalidArgument,
			"predicted_seconds: has 2 predictions, there are 1 candidates"},
		"no prediction": {&tilthv1.ProposeBatchRequest{Candidates: candidates("a", "b"), PredictedSeconds: []float32{1, -1}}, codes.InvalidArgument,
			"predicted_seconds: has -1 s for candidate 1"},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Lease = lease
			_, err := f.search.ProposeBatch(t.Context(), c.request)
			wantStatus(t, err, c.code, "", c.want)
		})
	}
	_, err := f.search.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{Lease: lease, Proposal: 2, Candidates: candidates("a")})
	wantStatus(t, err, codes.FailedPrecondition, wire.ReasonHistory, "proposal: is 2, the job's next is 0")
	_, err = f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{Lease: lease, State: tilthv1.JobState_JOB_STATE_RUNNING})
	wantStatus(t, err, codes.InvalidArgument, "", "state: is JOB_STATE_RUNNING")
}

func TestBadReportsAreRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	conv := spec("conv")
	conv.Tasks[0].LeastSeconds = 0.01
	f.submit("r1", conv)
	f.propose(f.mustLease(f.tuner()).GetLease(), 0, 0, "a", "b")
	work := f.mustLease(f.builder())
	for name, c := range map[string]struct {
		spoil func(*tilthv1.ReportBuildRequest)
		want  string
	}{
		"lacks one":    {func(r *tilthv1.ReportBuildRequest) { r.Outcomes = r.Outcomes[:1] }, "outcomes: lacks candidate"},
		"one twice":    {func(r *tilthv1.ReportBuildRequest) { r.Outcomes[1] = r.Outcomes[0] }, "duplicate"},
		"a stranger":   {func(r *tilthv1.ReportBuildRequest) { r.Outcomes[1].Candidate = "x" }, "is not to be built"},
		"no class":     {func(r *tilthv1.ReportBuildRequest) { r.Outcomes[0].Error = 0 }, "outcomes[0].error: is ERROR_CLASS_UNSPECIFIED"},
		"no artifact":  {func(r *tilthv1.ReportBuildRequest) { r.Artifacts = nil }, "artifacts: are 0"},
		"wrong infra":  {func(r *tilthv1.ReportBuildRequest) { r.InfraError = crash }, "infra_error: is ERROR_CLASS_CRASH"},
		"broken times": {func(r *tilthv1.ReportBuildRequest) { r.Outcomes[0].BuildSeconds = -1 }, "outcomes[0].build_seconds: is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := f.buildReport(work)
			c.spoil(r)
			_, err := f.build.ReportBuild(t.Context(), r)
			wantStatus(t, err, codes.InvalidArgument, "", c.want)
		})
	}
	f.reportBuild(f.buildReport(work))
	run := f.mustLease(f.runner())
	cs := run.GetMeasure().GetCandidates()
	noMedian := ok(cs[0], 0.5)
	noMedian.LatencySeconds = 1e-9
	for name, c := range map[string]struct {
		request *tilthv1.ReportMeasurementsRequest
		want    string
	}{
		"nothing":        {&tilthv1.ReportMeasurementsRequest{}, "measurements: is empty"},
		"a stranger":     {&tilthv1.ReportMeasurementsRequest{Measurements: []*tilthv1.Measurement{ok(candidates("z")[0], 1)}}, "is not in batch"},
		"wrong trial":    {&tilthv1.ReportMeasurementsRequest{Measurements: []*tilthv1.Measurement{ok(&tilthv1.Candidate{Digest: cs[0].GetDigest(), Trial: 7}, 1)}}, "is not in batch"},
		"one twice":      {&tilthv1.ReportMeasurementsRequest{Measurements: []*tilthv1.Measurement{ok(cs[0], 1), ok(cs[0], 1)}}, "duplicate"},
		"no latency":     {&tilthv1.ReportMeasurementsRequest{Measurements: []*tilthv1.Measurement{ok(cs[0], 0)}}, "has a latency of 0 s"},
		"no median":      {&tilthv1.ReportMeasurementsRequest{Measurements: []*tilthv1.Measurement{noMedian}}, "measurement.latency_seconds is 1e-09, and the median"},
		"too fast":       {&tilthv1.ReportMeasurementsRequest{Measurements: []*tilthv1.Measurement{ok(cs[0], 0.009)}}, "is 0.009 s; at the rates of its machine, the workload takes at least 0.01 s"},
		"infra as trial": {&tilthv1.ReportMeasurementsRequest{Measurements: []*tilthv1.Measurement{{Candidate: cs[0], Error: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA}}}, "measurement.error is ERROR_CLASS_DEVICE_INFRA"},
		"wrong infra":    {&tilthv1.ReportMeasurementsRequest{InfraError: tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA}, "infra_error: is ERROR_CLASS_BUILD_INFRA"},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Lease = run.GetLease()
			_, err := f.measure.ReportMeasurements(t.Context(), c.request)
			wantStatus(t, err, codes.InvalidArgument, "", c.want)
		})
	}
}
