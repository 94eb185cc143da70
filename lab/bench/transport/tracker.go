package main

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// tracker hands batches on: from tuners to builders, and from these to runners. It keeps nothing else.
//
// A batch's name is the subject of the lease that it was handed in with, which is when that was.
type tracker struct {
	tilthv1.UnimplementedAgentServiceServer
	tilthv1.UnimplementedSearchServiceServer
	tilthv1.UnimplementedBuildServiceServer
	tilthv1.UnimplementedMeasureServiceServer

	builders, runners line
	// What a lease of each says of its work.
	build, measure *tilthv1.LeaseWorkResponse
}

// newTracker makes a tracker that encodes each answer, unless it is to do so beforehand.
func newTracker(encoded bool) (*tracker, error) {
	t := &tracker{
		build: &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Build{
			Build: &tilthv1.BuildWork{BatchId: jobID, JobId: jobID, Target: target, Task: task, Candidates: candidates(true)},
		}},
		measure: &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Measure{
			Measure: &tilthv1.MeasureWork{
				BatchId: jobID, JobId: jobID, Target: target, Task: task, Candidates: candidates(false),
				Artifacts: []*tilthv1.ArtifactRef{object}, BestSeconds: 3e-4, Best: measurements()[0],
			},
		}},
	}
	if !encoded {
		return t, nil
	}
	for _, m := range []*tilthv1.LeaseWorkResponse{t.build, t.measure} {
		text, err := proto.Marshal(m)
		if err != nil {
			return nil, err
		}
		// Fields that a message does not know are written as they are.
		m.Work = nil
		m.ProtoReflect().SetUnknown(text)
	}
	return t, nil
}

func (t *tracker) register(s grpc.ServiceRegistrar) {
	tilthv1.RegisterAgentServiceServer(s, t)
	tilthv1.RegisterSearchServiceServer(s, t)
	tilthv1.RegisterBuildServiceServer(s, t)
	tilthv1.RegisterMeasureServiceServer(s, t)
	s.RegisterService(&leasesDesc, t)
}

// lease has answer called with the agent's next work, or with nothing.
func (t *tracker) lease(request *tilthv1.LeaseWorkRequest, answer func(*tilthv1.LeaseWorkResponse)) {
	line, work := &t.runners, t.measure
	if strings.HasPrefix(request.GetSession(), builder.name) {
		line, work = &t.builders, t.build
	}
	line.ask(request.GetWait().AsDuration(), func(batch string) {
		if batch == "" {
			answer(&tilthv1.LeaseWorkResponse{})
			return
		}
		granted := &tilthv1.LeaseWorkResponse{Lease: &tilthv1.LeaseToken{Session: request.GetSession(), Subject: batch, Attempt: 1}, Work: work.Work}
		granted.ProtoReflect().SetUnknown(work.ProtoReflect().GetUnknown())
		answer(granted)
	})
}

// LeaseWork implements tilthv1.AgentServiceServer.
func (t *tracker) LeaseWork(_ context.Context, request *tilthv1.LeaseWorkRequest) (*tilthv1.LeaseWorkResponse, error) {
	granted := make(chan *tilthv1.LeaseWorkResponse, 1)
	t.lease(request, func(r *tilthv1.LeaseWorkResponse) { granted <- r })
	return <-granted, nil
}

// Heartbeat implements tilthv1.AgentServiceServer.
func (t *tracker) Heartbeat(context.Context, *tilthv1.HeartbeatRequest) (*tilthv1.HeartbeatResponse, error) {
	return &tilthv1.HeartbeatResponse{}, nil
}

// ProposeBatch implements tilthv1.SearchServiceServer.
func (t *tracker) ProposeBatch(_ context.Context, request *tilthv1.ProposeBatchRequest) (*tilthv1.ProposeBatchResponse, error) {
	t.builders.put(request.GetLease().GetSubject())
	return &tilthv1.ProposeBatchResponse{BatchId: jobID, FirstTrial: 1000}, nil
}

// ReportBuild implements tilthv1.BuildServiceServer.
func (t *tracker) ReportBuild(_ context.Context, request *tilthv1.ReportBuildRequest) (*tilthv1.ReportBuildResponse, error) {
	t.runners.put(request.GetLease().GetSubject())
	return &tilthv1.ReportBuildResponse{}, nil
}

// ReportMeasurements implements tilthv1.MeasureServiceServer.
func (t *tracker) ReportMeasurements(context.Context, *tilthv1.ReportMeasurementsRequest) (*tilthv1.ReportMeasurementsResponse, error) {
	return &tilthv1.ReportMeasurementsResponse{}, nil
}

// leasesMethod is a call for all of an agent's work: of each request that it sends, the answer comes when there is
// work. Its handler has to wait in it, since the call ends with its handler.
const leasesMethod = "/tilth.bench.Leases/Lease"

var leasesDesc = grpc.ServiceDesc{
	ServiceName: "tilth.bench.Leases", HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: "Lease", ServerStreams: true, ClientStreams: true,
		Handler: func(t any, stream grpc.ServerStream) error { return t.(*tracker).leases(stream) },
	}},
}

func (t *tracker) leases(stream grpc.ServerStream) error {
	for {
		request := &tilthv1.LeaseWorkRequest{}
		if err := stream.RecvMsg(request); err != nil {
			return err
		}
		work, err := t.LeaseWork(stream.Context(), request)
		if err != nil {
			return err
		}
		if err := stream.SendMsg(work); err != nil {
			return err
		}
	}
}
