package tracker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// shardedFarm is a process with several shards, each with an in-memory store, and a connection like that of agents
// and clients.
type shardedFarm struct {
	*testing.T
	address string
	site    string
	conn    *grpc.ClientConn
	jobs    tilthv1.JobServiceClient
	agents  tilthv1.AgentServiceClient
	devices tilthv1.DeviceServiceClient
}

func newSharded(t *testing.T, cfg tracker.Config) *shardedFarm {
	t.Helper()
	host := tracker.NewHost(tracker.HostConfig{
		Security: cfg.Security, Shards: someShards, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Spread: agent.CallShards,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	for shard := range someShards {
		metrics := prometheus.NewRegistry()
		c := cfg
		c.Store = must[records.Store](t)(bolt.OpenMemory(bolt.Options{Generation: records.NewGenerationOf(shard)}))
		t.Cleanup(func() { c.Store.Close() })
		c.ArtifactsDir = filepath.Join(t.TempDir(), "artifacts")
		c.Registerer = prometheus.WrapRegistererWith(prometheus.Labels{"shard": strconv.Itoa(shard)}, metrics)
		c.Shard = tracker.Shard{Index: shard, Count: someShards}
		one := must[*tracker.Tracker](t)(tracker.New(c))
		host.Add(one, metrics)
		parts.Go(func() {
			if err := one.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	f := &shardedFarm{T: t, address: "unix:" + filepath.Join(t.TempDir(), "sock")}
	rpc := must[net.Listener](t)(tracker.Listen(f.address))
	web := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	f.site = "http://" + web.Addr().String()
	parts.Go(func() {
		if err := host.Serve(ctx, rpc, web); err != nil {
			t.Error(err)
		}
	})
	f.conn = must[*grpc.ClientConn](t)(agent.Dial(f.address))
	f.jobs, f.agents = tilthv1.NewJobServiceClient(f.conn), tilthv1.NewAgentServiceClient(f.conn)
	f.devices = tilthv1.NewDeviceServiceClient(f.conn)
	t.Cleanup(func() {
		f.conn.Close()
		cancel()
		parts.Wait()
	})
	return f
}

// plain returns a connection that does not name shards.
func (f *shardedFarm) plain() *grpc.ClientConn {
	f.Helper()
	conn := must[*grpc.ClientConn](f)(grpc.NewClient(f.address, grpc.WithTransportCredentials(insecure.NewCredentials())))
	f.Cleanup(func() { conn.Close() })
	return conn
}

// at returns a context for calls of a plain connection to a shard.
func (f *shardedFarm) at(shard int) context.Context {
	return metadata.AppendToOutgoingContext(f.Context(), wire.ShardHeader, strconv.Itoa(shard))
}

func (f *shardedFarm) join(name string, kind tilthv1.AgentKind) (session string) {
	f.Helper()
	joined := must[*tilthv1.JoinResponse](f)(f.agents.Join(f.Context(), &tilthv1.JoinRequest{Spec: agentSpec(name, kind)}))
	return joined.GetSession()
}

func (f *shardedFarm) submit(request, owner string) *tilthv1.Job {
	f.Helper()
	s := spec("conv")
	s.Owner = owner
	return must[*tilthv1.SubmitJobResponse](f)(f.jobs.SubmitJob(f.Context(), &tilthv1.SubmitJobRequest{RequestId: request, Spec: s})).GetJob()
}

func (f *shardedFarm) lease(session string, wait time.Duration) *tilthv1.LeaseWorkResponse {
	f.Helper()
	return must[*tilthv1.LeaseWorkResponse](f)(f.agents.LeaseWork(f.Context(), &tilthv1.LeaseWorkRequest{Session: session, Wait: durationpb.New(wait)}))
}

func TestOwnerHasOneShard(t *testing.T) {
	f := newSharded(t, tracker.Config{Shares: policy.Shares{Default: policy.Share{Jobs: 2}}})
	var owners []string
	for i := range 9 {
		owner := fmt.Sprint("team-", i)
		owners = append(owners, owner)
		first, second := f.submit("a", owner), f.submit("b", owner)
		for _, j := range []*tilthv1.Job{first, second, f.submit("a", owner)} {
			if got, want := wire.ShardOf(j.GetId()), wire.ShardOfOwner(owner, someShards); got != want {
				t.Errorf("job %s of %s is in shard %d, want %d", j.GetId(), owner, got, want)
			}
		}
		if again := f.submit("a", owner); again.GetId() != first.GetId() {
			t.Errorf("a submission that is repeated makes %s beside %s", again.GetId(), first.GetId())
		}
		// The owner's quota covers all trackers.
		s := spec("conv")
		s.Owner = owner
		for shard := range someShards {
			_, err := tilthv1.NewJobServiceClient(f.plain()).SubmitJob(f.at(shard), &tilthv1.SubmitJobRequest{RequestId: "c", Spec: s})
			want := wire.ReasonQuota
			if shard != wire.ShardOfOwner(owner, someShards) {
				want = wire.ReasonOtherShard
			}
			if wire.Reason(err) != want {
				t.Errorf("a third job of %s in shard %d: %v, want %s", owner, shard, err, want)
			}
		}
		if got := must[*tilthv1.GetJobResponse](t)(f.jobs.GetJob(t.Context(), &tilthv1.GetJobRequest{JobId: second.GetId()})); got.GetJob().GetId() != second.GetId() {
			t.Errorf("job %s is %v", second.GetId(), got)
		}
	}
	var listed []string
	for token := ""; ; {
		page := must[*tilthv1.ListOwnersResponse](t)(f.jobs.ListOwners(t.Context(), &tilthv1.ListOwnersRequest{PageSize: 2, PageToken: token}))
		for _, o := range page.GetOwners() {
			listed = append(listed, o.GetName())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if !slices.Equal(listed, owners) {
		t.Errorf("the owners are listed as %v, want %v", listed, owners)
	}
}

func TestDeviceDecisionsApplyToAllShards(t *testing.T) {
	f := newSharded(t, tracker.Config{})
	session := f.join("board", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	if _, err := f.devices.CordonDevice(t.Context(), &tilthv1.CordonDeviceRequest{Name: "board", By: "ana", Reason: "smoke"}); err != nil {
		t.Fatal(err)
	}
	everywhere := func(want tilthv1.DeviceState) {
		t.Helper()
		for shard := range someShards {
			d, err := tilthv1.NewDeviceServiceClient(f.plain()).GetDevice(f.at(shard), &tilthv1.GetDeviceRequest{Name: "board"})
			if err != nil || d.GetDevice().GetState() != want {
				t.Errorf("in shard %d the device is %v, %v, want %v", shard, d.GetDevice().GetState(), err, want)
			}
		}
	}
	everywhere(tilthv1.DeviceState_DEVICE_STATE_CORDONED)
	if _, err := f.devices.UncordonDevice(t.Context(), &tilthv1.UncordonDeviceRequest{Name: "board", By: "ana"}); err != nil {
		t.Fatal(err)
	}
	everywhere(tilthv1.DeviceState_DEVICE_STATE_READY)
	answer, err := http.Post(f.site+"/api/v1/devices/board:drain", "application/json", strings.NewReader(`{"reason": "a fan", "by": "ana"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	everywhere(tilthv1.DeviceState_DEVICE_STATE_CORDONED)
	if _, err := f.devices.UncordonDevice(t.Context(), &tilthv1.UncordonDeviceRequest{Name: "board", By: "ana"}); err != nil {
		t.Fatal(err)
	}
	listed := must[*tilthv1.ListDevicesResponse](t)(f.devices.ListDevices(t.Context(), &tilthv1.ListDevicesRequest{}))
	agents := must[*tilthv1.ListAgentsResponse](t)(f.agents.ListAgents(t.Context(), &tilthv1.ListAgentsRequest{}))
	if len(listed.GetDevices()) != 1 || len(agents.GetAgents()) != 1 {
		t.Errorf("%d devices and %d agents are listed", len(listed.GetDevices()), len(agents.GetAgents()))
	}
	if _, err := f.agents.Leave(t.Context(), &tilthv1.LeaveRequest{Session: session}); err != nil {
		t.Fatal(err)
	}
	_, err = f.agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: session})
	if wire.Reason(err) != wire.ReasonVoidSession {
		t.Errorf("the session of who left: %v", err)
	}
}

// TestWorkOfTwoShardsIsHandedBackOnce checks requests that wait at all shards. If several grant work at once, the
// surplus is returned and waits for the next agent.
func TestWorkOfTwoShardsIsHandedBackOnce(t *testing.T) {
	f := newSharded(t, tracker.Config{})
	session := f.join("tuner", tilthv1.AgentKind_AGENT_KIND_TUNER)
	if work := f.lease(session, 0); work.GetLease() != nil {
		t.Fatalf("there is work: %v", work)
	}
	leased := make(chan *tilthv1.LeaseWorkResponse)
	go func() {
		work, _ := f.agents.LeaseWork(f.Context(), &tilthv1.LeaseWorkRequest{Session: session, Wait: durationpb.New(time.Minute)})
		leased <- work
	}()
	var submitted sync.WaitGroup
	for shard := range someShards {
		submitted.Go(func() { f.submit("r", ownerOf(shard)) })
	}
	submitted.Wait()
	held := map[string]*tilthv1.LeaseToken{}
	take := func(work *tilthv1.LeaseWorkResponse) {
		if lease := work.GetLease(); lease != nil {
			held[lease.GetSubject()] = lease
		}
	}
	take(<-leased)
	if len(held) != 1 {
		t.Fatalf("the request that waited got %v", held)
	}
	for len(held) < someShards {
		work := f.lease(session, 20*time.Second) // leases only return explicitly, because there are no heartbeats
		if work.GetLease() == nil {
			t.Fatalf("only %d jobs were leased: %v", len(held), held)
		}
		take(work)
	}
	listed := must[*tilthv1.GetAgentResponse](t)(f.agents.GetAgent(t.Context(), &tilthv1.GetAgentRequest{Name: "tuner"}))
	if a := listed.GetAgent(); a.GetFailed() != 0 || a.GetState() != tilthv1.AgentState_AGENT_STATE_BUSY {
		t.Errorf("the tuner is %v, and %d leases failed", a.GetState(), a.GetFailed())
	}
}

func TestTunersSwitchShardsAfterTheirTurn(t *testing.T) {
	f := newSharded(t, tracker.Config{SearchTurn: time.Millisecond})
	session := f.join("tuner", tilthv1.AgentKind_AGENT_KIND_TUNER)
	f.submit("r", ownerOf(1))
	held := f.lease(session, 0).GetLease()
	if held == nil {
		t.Fatal("there is no work")
	}
	other := f.submit("r", ownerOf(2))
	for end := time.Now().Add(10 * time.Minute); held != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the tuner keeps its job")
		}
		answer := must[*tilthv1.HeartbeatResponse](t)(f.agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: session, Leases: []*tilthv1.LeaseToken{held}}))
		if len(answer.GetDropped()) > 0 {
			held = nil
		}
	}
	if got := f.lease(session, 0).GetLease().GetSubject(); got != other.GetId() {
		t.Errorf("the tuner goes on with %q, want %q", got, other.GetId())
	}
}

func TestJoblessUploadsReachAllShards(t *testing.T) {
	f := newSharded(t, tracker.Config{})
	client := artifact.NewClient(f.conn, nil, slog.New(slog.DiscardHandler))
	path := filepath.Join(t.TempDir(), "package")
	if err := os.WriteFile(path, []byte(strings.Repeat("package", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	ref := must[*tilthv1.ArtifactRef](t)(client.Upload(t.Context(), "package", path))
	f.everywhere(ref)
	stream := must[grpc.ServerStreamingClient[tilthv1.DownloadArtifactResponse]](t)(
		tilthv1.NewArtifactServiceClient(f.conn).DownloadArtifact(t.Context(), &tilthv1.DownloadArtifactRequest{Digest: ref.GetDigest()}))
	size := 0
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		size += len(part.GetData())
	}
	if size != 700_000 {
		t.Errorf("%d bytes come back", size)
	}
	absent := must[grpc.ServerStreamingClient[tilthv1.DownloadArtifactResponse]](t)(
		tilthv1.NewArtifactServiceClient(f.conn).DownloadArtifact(t.Context(), &tilthv1.DownloadArtifactRequest{Digest: records.Digest([]byte("none"))}))
	if _, err := absent.Recv(); status.Code(err) != codes.NotFound {
		t.Errorf("what no shard has: %v", err)
	}
}

// everywhere checks that all shards have an artifact.
func (f *shardedFarm) everywhere(ref *tilthv1.ArtifactRef) {
	f.Helper()
	for shard := range someShards {
		there, err := tilthv1.NewArtifactServiceClient(f.plain()).StatArtifact(f.at(shard), &tilthv1.StatArtifactRequest{Digest: ref.GetDigest()})
		if err != nil || !there.GetComplete() {
			f.Errorf("shard %d has %v, %v", shard, there, err)
		}
	}
}

// large returns a file larger than the buffers of a stream.
func large(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "package")
	if err := os.WriteFile(path, []byte(strings.Repeat("a package of", wire.WindowBytes/8)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUploadsSkipShardsThatHaveTheArtifact checks that a shard with the package ends its stream at once, while the
// others receive the rest.
func TestUploadsSkipShardsThatHaveTheArtifact(t *testing.T) {
	for _, shard := range []int{0, 2} {
		f := newSharded(t, tracker.Config{})
		path, log := large(t), slog.New(slog.DiscardHandler)
		if _, err := artifact.NewClient(f.plain(), nil, log).Upload(f.at(shard), "package", path); err != nil {
			t.Fatal(err)
		}
		f.everywhere(must[*tilthv1.ArtifactRef](t)(artifact.NewClient(f.conn, nil, log).Upload(t.Context(), "package", path)))
	}
}

// onWrite is a log that calls a function at its first line.
type onWrite struct {
	once sync.Once
	do   func()
}

func (w *onWrite) Write(p []byte) (int, error) {
	w.once.Do(w.do)
	return len(p), nil
}

// TestUploadsToAllShardsRetryADeferredShard checks that an upload refused temporarily by one shard is retried, even
// while others still receive data.
func TestUploadsToAllShardsRetryADeferredShard(t *testing.T) {
	f := newSharded(t, tracker.Config{Artifacts: artifact.Options{Uploads: 1}})
	const busy = 1
	// An unfinished upload uses all space of one shard, so a probe after it is refused.
	ctx, cancel := context.WithCancel(f.at(busy))
	defer cancel()
	conn := f.plain()
	begin := func() (ended <-chan struct{}) {
		other := must[grpc.ClientStreamingClient[tilthv1.UploadArtifactRequest, tilthv1.UploadArtifactResponse]](t)(tilthv1.NewArtifactServiceClient(conn).UploadArtifact(ctx))
		if err := other.Send(&tilthv1.UploadArtifactRequest{Digest: records.Digest([]byte("other")), SizeBytes: 100, Data: []byte("o")}); err != nil {
			t.Fatal(err)
		}
		told := make(chan struct{})
		go func() {
			defer close(told)
			_ = other.RecvMsg(&tilthv1.UploadArtifactResponse{}) // any end
		}()
		return told
	}
	ended := begin()
	probe := filepath.Join(t.TempDir(), "probe")
	for full := false; !full; { // until the upload has arrived
		if err := os.WriteFile(probe, []byte(rand.Text()), 0o600); err != nil {
			t.Fatal(err)
		}
		once, stop := context.WithCancel(f.at(busy))
		_, err := artifact.NewClient(conn, nil, slog.New(slog.NewTextHandler(&onWrite{do: stop}, nil))).Upload(once, "probe", probe)
		stop()
		full = err != nil
		select {
		case <-ended:
			ended, full = begin(), false
		default:
		}
	}
	// The client's first log line reports the refusal.
	client := artifact.NewClient(f.conn, nil, slog.New(slog.NewTextHandler(&onWrite{do: cancel}, nil)))
	f.everywhere(must[*tilthv1.ArtifactRef](t)(client.Upload(t.Context(), "package", large(t))))
	if ctx.Err() == nil {
		t.Error("no shard refused it")
	}
}

func TestCallThatNamesNoShardIsToldSo(t *testing.T) {
	f := newSharded(t, tracker.Config{})
	conn := f.plain()
	_, err := tilthv1.NewAgentServiceClient(conn).Join(t.Context(), &tilthv1.JoinRequest{Spec: agentSpec("old", tilthv1.AgentKind_AGENT_KIND_TUNER)})
	if count, is := wire.Shard(err, wire.ReasonShards); !is || count != someShards || status.Code(err) != codes.FailedPrecondition {
		t.Errorf("an agent that knows no shards: %v", err)
	}
	for _, strange := range []string{"-1", "4", "x", ""} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), wire.ShardHeader, strange)
		if _, err := tilthv1.NewJobServiceClient(conn).ListOwners(ctx, &tilthv1.ListOwnersRequest{}); wire.Reason(err) != wire.ReasonShards {
			t.Errorf("shard %q: %v", strange, err)
		}
	}
	// Calls that concern no job are public.
	if _, err := tilthv1.NewRecordServiceClient(conn).BestRecords(t.Context(), &tilthv1.BestRecordsRequest{Target: "cpu-1"}); err != nil {
		t.Errorf("records: %v", err)
	}
	if _, err := tilthv1.NewRecordServiceClient(conn).ListRecordGroups(t.Context(), &tilthv1.ListRecordGroupsRequest{}); err != nil {
		t.Errorf("groups of records: %v", err)
	}
}

// TestShardsAskWhoCalls checks that all calls are authenticated, whatever their shard.
func TestShardsAskWhoCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	secrets := map[string]string{}
	for name, role := range map[string]access.Role{"ana": access.Client, "bob": access.Client, "board": access.Agent, "other": access.Agent} {
		secret, _, err := access.CreateToken(path, access.TokenRequest{Name: name, Role: role}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		secrets[name] = secret
	}
	f := newSharded(t, tracker.Config{Security: tracker.Security{Tokens: must[*access.TokenFile](t)(access.OpenTokens(path, slog.New(slog.DiscardHandler), nil))}})
	as := func(name string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+secrets[name])
	}
	if _, err := f.jobs.ListOwners(t.Context(), &tilthv1.ListOwnersRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("nobody in particular: %v", err)
	}
	s := spec("conv")
	s.Owner = "bob" // only used by an open tracker
	job := must[*tilthv1.SubmitJobResponse](t)(f.jobs.SubmitJob(as("ana"), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: s})).GetJob()
	if got, want := wire.ShardOf(job.GetId()), wire.ShardOfOwner("ana", someShards); got != want || job.GetSpec().GetOwner() != "ana" {
		t.Errorf("the job of ana is in shard %d, want %d, and of %q", got, want, job.GetSpec().GetOwner())
	}
	if _, err := f.jobs.CancelJob(as("bob"), &tilthv1.CancelJobRequest{JobId: job.GetId()}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("bob cancels the job of ana: %v", err)
	}
	joined := must[*tilthv1.JoinResponse](t)(f.agents.Join(as("board"), &tilthv1.JoinRequest{Spec: agentSpec("board", tilthv1.AgentKind_AGENT_KIND_TUNER)}))
	_, err := f.agents.Heartbeat(as("other"), &tilthv1.HeartbeatRequest{Session: joined.GetSession()})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("another agent keeps the session alive: %v", err)
	}
	request := &tilthv1.LeaseWorkRequest{Session: joined.GetSession()}
	if work := must[*tilthv1.LeaseWorkResponse](t)(f.agents.LeaseWork(as("board"), request)); work.GetLease().GetSubject() != job.GetId() {
		t.Errorf("the tuner gets %v", work)
	}
	if _, err := f.jobs.CancelJob(as("ana"), &tilthv1.CancelJobRequest{JobId: job.GetId()}); err != nil {
		t.Errorf("ana cancels her job: %v", err)
	}
}

func TestPagesOfSeveralShards(t *testing.T) {
	f := newSharded(t, tracker.Config{})
	job := f.submit("r", ownerOf(3))
	for path, want := range map[string]string{
		"/readyz": "", "/healthz": "", "/metrics": `tilth_tracker_active{shard="3"} 1`, "/jobs/" + job.GetId(): job.GetId(), "/devices": "",
	} {
		answer, err := http.Get(f.site + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s is %s, %v, without %q", path, answer.Status, err, want)
		}
	}
}

// TestProcessWithoutAShardIsMeasured is a regression test: a process that could not open any shard did not export
// that it serves none.
func TestProcessWithoutAShardIsMeasured(t *testing.T) {
	metrics := prometheus.NewRegistry()
	tracker.NewHost(tracker.HostConfig{Shards: someShards, Logger: slog.New(slog.DiscardHandler), Metrics: metrics})
	got := map[string]float64{}
	for _, family := range must[[]*dto.MetricFamily](t)(metrics.Gather()) {
		for _, m := range family.GetMetric() {
			got[family.GetName()] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{"tilth_tracker_active": 0, "tilth_tracker_shards": someShards}
	if !maps.Equal(got, want) {
		t.Errorf("its metrics are %v, want %v", got, want)
	}
}

func TestProcessIsMeasuredBesideItsShards(t *testing.T) {
	f := newSharded(t, tracker.Config{})
	answer, err := http.Get(f.site + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text := string(must[[]byte](t)(io.ReadAll(answer.Body)))
	for _, line := range []string{
		"tilth_tracker_active 0", "tilth_tracker_active{shard=\"0\"} 1", fmt.Sprint("tilth_tracker_shards ", someShards),
		fmt.Sprint("tilth_tracker_shards{shard=\"0\"} ", someShards),
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
}
