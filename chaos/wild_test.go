package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/tilth-dev/tilth/access"
	"github.com/tilth-dev/tilth/access/audit"
	"github.com/tilth-dev/tilth/access/tokens"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// wild calls a live tracker with messages that a program gone wrong might send: good ones of which some fields are cleared, or
// replaced by what belongs elsewhere or nowhere; made-up ones; and bytes that are no message.
type wild struct {
	*rapid.T
	conn    *grpc.ClientConn
	methods []protoreflect.MethodDescriptor
	// words are strings that mean something somewhere, by the names of the fields in which they came.
	words    map[string][]string
	works    []*tilthv1.LeaseWorkResponse
	proposed uint64
	requests int
	// callers have a token for each role.
	callers map[access.Role]string
	calls   int
}

// wildCount is how many calls were made, and since when.
var wildCount struct {
	calls atomic.Int64
	began sync.Once
	since time.Time
}

// TestNoCallStopsOrDamagesTheTracker lets the tracker be called wildly, and then restarts it on its file and checks its logs.
func TestNoCallStopsOrDamagesTheTracker(t *testing.T) {
	rapid.Check(t, wildCalls)
	calls := wildCount.calls.Load()
	t.Logf("%d calls, %.0f a minute", calls, float64(calls)/time.Since(wildCount.since).Minutes())
}

// FuzzCalls is the same, led by what of the tracker's code is reached.
func FuzzCalls(f *testing.F) { f.Fuzz(rapid.MakeFuzz(wildCalls)) }

// callsAtOnce are made in each step, so that most of the time goes into calls and not into starting trackers.
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
	w.callOwn(tilthv1.JobService_ListJobs_FullMethodName, &tilthv1.ListJobsRequest{}) // it still answers
	stop()
	_, stop = serveWild(t, dir)
	stop()
	checkStore(t, filepath.Join(dir, recordsName))
}

// inMemory is a folder of a file system in memory, where there is one: what a disk costs is not asked here.
func inMemory() string {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err == nil && info.IsDir() && unix.Access(dir, unix.W_OK) == nil {
		return dir
	}
	return ""
}

// makeCallers makes the tokens of an identity of each role.
func makeCallers(t *rapid.T, dir string) map[access.Role]string {
	callers := map[access.Role]string{}
	for _, role := range []access.Role{access.ReadOnly, access.Client, access.Agent, access.Admin} {
		text, _, err := tokens.Create(filepath.Join(dir, tokensName), tokens.Request{Name: string(role), Role: role}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		callers[role] = text
	}
	return callers
}

// serveWild serves a tracker over the data in dir, behind its gate.
func serveWild(t *rapid.T, dir string) (conn *grpc.ClientConn, stop func()) {
	db, err := records.Open(filepath.Join(dir, recordsName), records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var security tracker.Security
	security.Tokens, err = tokens.Open(filepath.Join(dir, tokensName), quiet, nil)
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.OpenFile(filepath.Join(dir, "audit.jsonl"), 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	security.Audit = audit.New(log, quiet)
	tr, err := tracker.New(tracker.Config{
		Store: db, ArtifactsDir: filepath.Join(dir, artifactsName), FirstRetry: -1, Security: security,
	})
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- tr.Serve(ctx, listener, nil) }()
	conn, err = grpc.NewClient("passthrough:wild", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return conn, func() {
		conn.Close()
		cancel()
		if err := <-served; err != nil {
			t.Fatalf("the tracker stopped: %v", err)
		}
		if err := errors.Join(db.Close(), security.Audit.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// caller is a context with the proof of a role that may make a call, as a rule, or with another's, a wrong one, or none.
func (w *wild) caller(path string) context.Context {
	role := access.Client
	for _, service := range []string{"AgentService", "SearchService", "BuildService", "MeasureService", "RunService", "ReportCalibration"} {
		if strings.Contains(path, service) {
			role = access.Agent
		}
	}
	switch rapid.IntRange(0, 19).Draw(w.T, "caller") {
	case 0:
		return context.Background()
	case 1:
		return withToken("tilth_wrong")
	case 2, 3:
		role = access.Admin
	case 4:
		role = access.ReadOnly
	case 5:
		role = access.Client
	}
	return withToken(w.callers[role])
}

// bound bounds the time of a call.
func (w *wild) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	w.calls++
	return context.WithTimeout(ctx, time.Minute)
}

// trackerMethods are those of all services of the wire, by name.
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

// begin gives the tracker a job and agents, so that there is something to damage.
func (w *wild) begin() {
	for _, k := range []string{"tuner", "builder", "runner"} {
		w.callOwn(tilthv1.AgentService_Join_FullMethodName, &tilthv1.JoinRequest{Spec: wildSpec(k)})
	}
	w.callOwn(tilthv1.JobService_SubmitJob_FullMethodName, w.good(tilthv1.JobService_SubmitJob_FullMethodName))
	for _, session := range w.words["session"] {
		w.callOwn(tilthv1.AgentService_LeaseWork_FullMethodName, &tilthv1.LeaseWorkRequest{Session: session})
	}
}

// callOwn makes a call that is let through.
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
	p := pretender{PretenderConfig: PretenderConfig{Kind: kind, Name: kind + "-1"}}
	spec, err := p.spec()
	if err != nil {
		panic(err) // the kinds are written above
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

// callBytes sends what may be no message of the method.
func (w *wild) callBytes() {
	m := w.method()
	request := raw(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(w.T, "bytes"))
	ctx, cancel := w.bound(w.caller(pathOf(m)))
	defer cancel()
	if m.IsStreamingClient() || m.IsStreamingServer() {
		_ = w.stream(ctx, m, []any{request}, grpc.ForceCodec(rawCodec{})) // however it ends
		return
	}
	var answer raw
	_ = w.conn.Invoke(ctx, pathOf(m), request, &answer, grpc.ForceCodec(rawCodec{})) // whatever it is answered
}

// send calls a method of any form.
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

// mostAnswers are read of a stream, which may have no end.
const mostAnswers = 3

// stream calls a method of streams and returns how it ended.
func (w *wild) stream(ctx context.Context, m protoreflect.MethodDescriptor, requests []any, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if m.IsStreamingServer() {
		time.AfterFunc(2*time.Millisecond, cancel) // a job that has not ended may have no more events
	}
	s, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer()}, pathOf(m), opts...)
	if err != nil {
		return err
	}
	for _, r := range requests {
		if s.SendMsg(r) != nil {
			break // the answer says why
		}
	}
	_ = s.CloseSend()
	for range mostAnswers {
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

// call makes a call of one request and one answer, as anybody.
func (w *wild) call(request proto.Message, path string) { w.callWith(w.caller(path), request, path) }

// callWith makes it with a caller's proof, and learns from the answer.
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

// checkCode refuses answers by which the tracker would blame itself, or is about to stop.
func (w *wild) checkCode(path string, requests []any, err error) {
	switch status.Code(err) {
	case codes.Unknown, codes.Internal, codes.Unavailable, codes.DeadlineExceeded:
		w.Fatalf("%s: %v\nasked: %.1000v", path, err, requests)
	}
}

// good is a request that the tracker should accept, as far as what was learnt allows; nil where there is no such.
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

// learn keeps the strings of a message by their fields.
func (w *wild) learn(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		keep := func(v protoreflect.Value) {
			switch f.Kind() {
			case protoreflect.StringKind:
				w.keepWord(string(f.Name()), v.String())
			case protoreflect.MessageKind:
				w.learn(v.Message())
			}
		}
		switch {
		case f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				keep(v.List().Get(i))
			}
		default:
			keep(v)
		}
		return true
	})
}

// mostWords bounds what is remembered of a field.
const mostWords = 12

func (w *wild) keepWord(field, word string) {
	if len(w.words[field]) < mostWords && len(word) < 200 && !slices.Contains(w.words[field], word) {
		w.words[field] = append(w.words[field], word)
	}
}

// word draws one that came in a field of the name.
func (w *wild) word(field string) string {
	if known := w.words[field]; len(known) > 0 {
		return rapid.SampledFrom(known).Draw(w.T, field)
	}
	return rapid.String().Draw(w.T, field)
}

// anyWord draws what belongs to the field, to another, or to none.
func (w *wild) anyWord(field string) string {
	switch rapid.IntRange(0, 9).Draw(w.T, "word") {
	case 0:
		return rapid.String().Draw(w.T, field)
	case 1:
		return strings.Repeat("\x00long", rapid.SampledFrom([]int{1, 1, 1, 1000, 20_000, 200_000}).Draw(w.T, "times"))
	case 2, 3:
		return w.word(rapid.SampledFrom(slices.Sorted(maps.Keys(w.words))).Draw(w.T, "other"))
	case 4:
		return ""
	}
	return w.word(field)
}

// mutate changes some fields of a message.
func (w *wild) mutate(m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		switch what := rapid.IntRange(0, 11).Draw(w.T, "change"); {
		case what == 0:
			m.Clear(f)
		case what == 1:
			w.set(m, f, 0)
		case f.IsList() && f.Message() != nil:
			list := m.Mutable(f).List()
			for k := range list.Len() {
				w.mutate(list.Get(k).Message())
			}
			if what == 2 && list.Len() > 0 {
				list.Append(list.Get(0)) // one comes twice
			}
		case f.Message() != nil && !f.IsMap() && m.Has(f):
			w.mutate(m.Mutable(f).Message())
		}
	}
}

// madeUp is a message of which each field is set, or not, to anything of its type.
func (w *wild) madeUp(d protoreflect.MessageDescriptor, depth int) proto.Message {
	if d.FullName() == (&durationpb.Duration{}).ProtoReflect().Descriptor().FullName() && rapid.Bool().Draw(w.T, "short") {
		return durationpb.New(time.Millisecond)
	}
	m := newMessage(d)
	for i := range d.Fields().Len() {
		if rapid.IntRange(0, 2).Draw(w.T, "set") > 0 {
			w.set(m.ProtoReflect(), d.Fields().Get(i), depth)
		}
	}
	return m
}

// mostItems is how many items a list has that has too many.
const mostItems = 5000

// mostDepth bounds made-up messages within messages.
const mostDepth = 4

func (w *wild) set(m protoreflect.Message, f protoreflect.FieldDescriptor, depth int) {
	switch {
	case depth == mostDepth && f.Message() != nil:
	case f.IsMap():
		m.Mutable(f).Map().Set(w.scalar(f.MapKey()).MapKey(), w.scalar(f.MapValue()))
	case f.IsList():
		list := m.Mutable(f).List()
		for range rapid.IntRange(0, 3).Draw(w.T, "length") {
			if f.Message() != nil {
				list.Append(protoreflect.ValueOfMessage(w.madeUp(f.Message(), depth+1).ProtoReflect()))
			} else {
				list.Append(w.scalar(f))
			}
		}
		if rapid.IntRange(0, 15).Draw(w.T, "many") == 0 {
			for range mostItems {
				list.Append(list.NewElement()) // small, since there are many
			}
		}
	case f.Message() != nil:
		m.Set(f, protoreflect.ValueOfMessage(w.madeUp(f.Message(), depth+1).ProtoReflect()))
	default:
		m.Set(f, w.scalar(f))
	}
}

// scalar draws a value of a field.
func (w *wild) scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(w.T, "bool"))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.Int32Range(-1, 20).Draw(w.T, "enum")))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(rapid.Int32().Draw(w.T, "int32"))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(rapid.Int64().Draw(w.T, "int64"))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32().Draw(w.T, "uint32"))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64().Draw(w.T, "uint64"))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(rapid.Float32().Draw(w.T, "float"))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(rapid.Float64().Draw(w.T, "double"))
	case protoreflect.BytesKind:
		some := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(w.T, "bytes")
		return protoreflect.ValueOfBytes(bytes.Repeat(some, rapid.SampledFrom([]int{1, 1, 1, 1, 5000, 100_000}).Draw(w.T, "times")))
	}
	return protoreflect.ValueOfString(w.anyWord(string(f.Name())))
}

// checkStore checks the logs of all jobs in a records file, and its pages.
func checkStore(t *rapid.T, path string) {
	if err := consistent(path); err != nil {
		t.Fatal(err)
	}
	db, err := records.OpenReadOnly(path, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	jobs, _, err := db.Jobs(records.JobQuery{Most: 1 << 20, MostBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{db: db, jobs: map[string]*storedJob{}, open: true}
	for _, j := range jobs {
		if err := c.readJob(j.GetId()); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.Violations) > 0 {
		t.Fatal(strings.Join(c.Violations, "\n"))
	}
}

// raw is a message as bytes.
type raw []byte

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return v.(raw), nil }

func (rawCodec) Unmarshal(b []byte, v any) error {
	*v.(*raw) = slices.Clone(b)
	return nil
}

func (rawCodec) Name() string { return "proto" }
