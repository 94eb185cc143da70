package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"pgregory.net/rapid"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// wild calls a live tracker with the messages of a faulty program: valid ones with fields cleared or replaced,
// made-up ones, and malformed bytes.
type wild struct {
	*rapid.T
	conn    *grpc.ClientConn
	methods []protoreflect.MethodDescriptor
	// words holds known strings by the names of their fields.
	words    map[string][]string
	works    []*tilthv1.LeaseWorkResponse
	proposed uint64
	requests int
	// callers holds a token for each role.
	callers map[access.Role]string
	calls   int
}

// wildCount counts calls.
var wildCount struct {
	calls atomic.Int64
	began sync.Once
	since time.Time
}

// TestNoCallStopsOrDamagesTheTracker makes wild calls, restarts the tracker on its file, and checks its logs.
func TestNoCallStopsOrDamagesTheTracker(t *testing.T) {
	rapid.Check(t, wildCalls)
	calls := wildCount.calls.Load()
	t.Logf("%d calls, %.0f a minute", calls, float64(calls)/time.Since(wildCount.since).Minutes())
}

// FuzzCalls is the same test, guided by coverage of the tracker's code.
func FuzzCalls(f *testing.F) { f.Fuzz(rapid.MakeFuzz(wildCalls)) }

// callsAtOnce is the number of calls per step. It is large, so that starting trackers takes little of the time.
const callsAtOnce = 10

func wildCalls(t *rapid.T) {
	wildCount.began.Do(func() { wildCount.since = time.Now() })
	dir, err := os.MkdirTemp(inMemory(), "wild")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	callers := makeCallers(t, dir)
	conn, stop := serveWild(t, dir)
	w := &wild{T: t, conn: conn, methods: trackerMethods(t), words: map[string][]string{}, callers: callers}
	defer func() { wildCount.calls.Add(int64(w.calls)) }()
	w.begin()
	several := func(call func()) func(*rapid.T) {
		return func(t *rapid.T) {
			w.T = t
			for range callsAtOnce {
				call()
			}
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"good":    several(func() { w.callGood(false) }),
		"mutated": several(func() { w.callGood(true) }),
		"made up": several(w.callMadeUp),
		"bytes":   several(w.callBytes),
	})
	w.T = t
	w.callOwn(tilthv1.JobService_ListJobs_FullMethodName, &tilthv1.ListJobsRequest{}) // the tracker still answers
	stop()
	_, stop = serveWild(t, dir)
	stop()
	checkStore(t, filepath.Join(dir, recordsName))
}

// trackerMethods returns the methods of all services, by name.
func trackerMethods(t *rapid.T) (out []protoreflect.MethodDescriptor) {
	protoregistry.GlobalFiles.RangeFilesByPackage("tilth.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			methods := f.Services().Get(i).Methods()
			for k := range methods.Len() {
				out = append(out, methods.Get(k))
			}
		}
		return true
	})
	slices.SortFunc(out, func(a, b protoreflect.MethodDescriptor) int { return strings.Compare(pathOf(a), pathOf(b)) })
	if len(out) < 20 {
		t.Fatalf("the wire has %d methods only", len(out))
	}
	return out
}

func pathOf(m protoreflect.MethodDescriptor) string {
	return fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
}

// begin creates a job and agents, so that there are data to damage.
func (w *wild) begin() {
	for _, k := range []string{"tuner", "builder", "runner"} {
		w.callOwn(tilthv1.AgentService_Join_FullMethodName, &tilthv1.JoinRequest{Spec: wildSpec(k)})
	}
	w.callOwn(tilthv1.JobService_SubmitJob_FullMethodName, w.good(tilthv1.JobService_SubmitJob_FullMethodName))
	for _, session := range w.words["session"] {
		w.callOwn(tilthv1.AgentService_LeaseWork_FullMethodName, &tilthv1.LeaseWorkRequest{Session: session})
	}
}

// callOwn makes a call that must succeed.
func (w *wild) callOwn(path string, request proto.Message) {
	role := access.Agent
	if strings.Contains(path, "JobService") {
		role = access.Client
	}
	w.callWith(withToken(w.callers[role]), request, path)
}

func withToken(token string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+token)
}

func wildSpec(kind string) *tilthv1.AgentSpec {
	p := simulatedAgent{simulatedAgentConfig: simulatedAgentConfig{Kind: kind, Name: kind + "-1"}}
	spec, err := p.spec()
	if err != nil {
		panic(err) // unreachable: the kinds are fixed
	}
	return spec
}

func (w *wild) method() protoreflect.MethodDescriptor {
	return rapid.SampledFrom(w.methods).Draw(w.T, "method")
}

func (w *wild) callGood(mutated bool) {
	m := w.method()
	request := w.good(pathOf(m))
	if request == nil {
		request = w.madeUp(m.Input(), 0)
	}
	if mutated {
		request = proto.Clone(request)
		w.mutate(request.ProtoReflect())
	}
	w.send(m, request)
}

func (w *wild) callMadeUp() {
	m := w.method()
	w.send(m, w.madeUp(m.Input(), 0))
}

// callBytes sends bytes that may not be a valid message.
func (w *wild) callBytes() {
	m := w.method()
	request := raw(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(w.T, "bytes"))
	ctx, cancel := w.bound(w.caller(pathOf(m)))
	defer cancel()
	if m.IsStreamingClient() || m.IsStreamingServer() {
		_ = w.stream(ctx, m, []any{request}, grpc.ForceCodec(rawCodec{})) // any outcome is fine
		return
	}
	var answer raw
	_ = w.conn.Invoke(ctx, pathOf(m), request, &answer, grpc.ForceCodec(rawCodec{})) // any answer is fine
}

// send calls a method of any kind.
func (w *wild) send(m protoreflect.MethodDescriptor, request proto.Message) {
	if !m.IsStreamingClient() && !m.IsStreamingServer() {
		w.call(request, pathOf(m))
		return
	}
	requests := []any{request}
	if m.IsStreamingClient() {
		for range rapid.IntRange(0, 2).Draw(w.T, "more") {
			requests = append(requests, w.madeUp(m.Input(), 0))
		}
	}
	ctx, cancel := w.bound(w.caller(pathOf(m)))
	defer cancel()
	w.checkCode(pathOf(m), requests, w.stream(ctx, m, requests))
}

// maxAnswers limits the answers read from a stream, which may be endless.
const maxAnswers = 3

// stream calls a streaming method and returns the final error.
func (w *wild) stream(ctx context.Context, m protoreflect.MethodDescriptor, requests []any, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if m.IsStreamingServer() {
		time.AfterFunc(2*time.Millisecond, cancel) // an open job may have no more events
	}
	s, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer()}, pathOf(m), opts...)
	if err != nil {
		return err
	}
	for _, r := range requests {
		if s.SendMsg(r) != nil {
			break // the receive error has the reason
		}
	}
	_ = s.CloseSend()
	for range maxAnswers {
		var answer any = new(raw)
		if len(opts) == 0 {
			answer = newMessage(m.Output())
		}
		if err := s.RecvMsg(answer); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil || !m.IsStreamingServer() {
			return err
		}
	}
	return nil
}

// call makes a unary call as a random caller.
func (w *wild) call(request proto.Message, path string) { w.callWith(w.caller(path), request, path) }

// callWith makes a unary call with given credentials, and learns from the answer.
func (w *wild) callWith(ctx context.Context, request proto.Message, path string) {
	ctx, cancel := w.bound(ctx)
	defer cancel()
	if r, is := request.(*tilthv1.LeaseWorkRequest); is && r.GetWait() != nil {
		time.AfterFunc(time.Millisecond, cancel) // there may be no work
	}
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(path[1:], "/", ".")))
	if err != nil {
		w.Fatal(err)
	}
	answer := newMessage(d.(protoreflect.MethodDescriptor).Output())
	err = w.conn.Invoke(ctx, path, request, answer)
	w.checkCode(path, []any{request}, err)
	w.learn(request.ProtoReflect())
	if err != nil {
		return
	}
	w.learn(answer.ProtoReflect())
	switch a := answer.(type) {
	case *tilthv1.LeaseWorkResponse:
		if a.GetLease() != nil {
			w.works = append(w.works, a)
		}
	case *tilthv1.ProposeBatchResponse:
		w.proposed = max(w.proposed, request.(*tilthv1.ProposeBatchRequest).GetProposal()+1)
	}
}

// checkCode rejects status codes that indicate a fault of the tracker itself.
func (w *wild) checkCode(path string, requests []any, err error) {
	switch status.Code(err) {
	case codes.Unknown, codes.Internal, codes.Unavailable, codes.DeadlineExceeded:
		w.Fatalf("%s: %v\nasked: %.1000v", path, err, requests)
	}
}

// good returns a request that the tracker should accept given the learnt strings, or nil.
func (w *wild) good(path string) proto.Message {
	switch path {
	case tilthv1.JobService_SubmitJob_FullMethodName:
		w.requests++
		return &tilthv1.SubmitJobRequest{RequestId: fmt.Sprint("wild-", w.requests%3), Spec: jobSpec(0)}
	case tilthv1.JobService_ListJobs_FullMethodName:
		return &tilthv1.ListJobsRequest{}
	case tilthv1.AgentService_Join_FullMethodName:
		return &tilthv1.JoinRequest{Spec: wildSpec(rapid.SampledFrom([]string{"tuner", "builder", "runner"}).Draw(w.T, "kind"))}
	case tilthv1.AgentService_LeaseWork_FullMethodName:
		return &tilthv1.LeaseWorkRequest{Session: w.word("session")}
	}
	if len(w.works) == 0 {
		return nil
	}
	work := rapid.SampledFrom(w.works).Draw(w.T, "work")
	lease := work.GetLease()
	switch path {
	case tilthv1.AgentService_Heartbeat_FullMethodName:
		return &tilthv1.HeartbeatRequest{Session: lease.GetSession(), Leases: []*tilthv1.LeaseToken{lease}}
	case tilthv1.AgentService_ReturnLease_FullMethodName:
		return &tilthv1.ReturnLeaseRequest{Lease: lease}
	case tilthv1.SearchService_ProposeBatch_FullMethodName:
		r := &tilthv1.ProposeBatchRequest{Lease: lease, Proposal: w.proposed}
		for i := range 3 {
			trace := fmt.Appendf(nil, "%d %d", w.proposed, i)
			r.Candidates = append(r.Candidates, &tilthv1.Candidate{Trace: trace, Digest: records.Digest(trace)})
		}
		return r
	case tilthv1.BuildService_ReportBuild_FullMethodName:
		r := &tilthv1.ReportBuildRequest{Lease: lease}
		for _, c := range work.GetBuild().GetCandidates() {
			r.Outcomes = append(r.Outcomes, &tilthv1.BuildOutcome{Candidate: c.GetDigest(), Error: tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR})
		}
		if n := len(r.GetOutcomes()); n > 0 && len(w.words["stored"]) > 0 {
			r.Outcomes[n-1].Error = tilthv1.ErrorClass_ERROR_CLASS_NONE
			r.Artifacts = []*tilthv1.ArtifactRef{{Role: "candidates", Digest: w.words["stored"][0], SizeBytes: 1}}
		}
		return r
	case tilthv1.MeasureService_ReportMeasurements_FullMethodName:
		r := &tilthv1.ReportMeasurementsRequest{Lease: lease}
		for _, c := range work.GetMeasure().GetCandidates() {
			r.Measurements = append(r.Measurements, &tilthv1.Measurement{
				Candidate: c, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, LatencySeconds: 1, SamplesSeconds: []float64{1},
			})
		}
		return r
	case tilthv1.ArtifactService_UploadArtifact_FullMethodName:
		content := []byte("x")
		w.words["stored"] = []string{records.Digest(content)}
		return &tilthv1.UploadArtifactRequest{Digest: records.Digest(content), SizeBytes: 1, Data: content}
	}
	return nil
}
