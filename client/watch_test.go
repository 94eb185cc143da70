package client

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log is a job service with the log of one job. Its streams break at given positions.
type log struct {
	tilthv1.UnimplementedJobServiceServer
	sequences []uint64
	// breaks lists the positions after which the next streams break.
	breaks []int
	// overlap makes each stream start that many events early, so that events are repeated.
	overlap uint64
	asked   []uint64
}

func (l *log) WatchJob(req *tilthv1.WatchJobRequest, stream grpc.ServerStreamingServer[tilthv1.WatchJobResponse]) error {
	l.asked = append(l.asked, req.GetFromSequence())
	end := len(l.sequences)
	broken := len(l.breaks) > 0
	if broken {
		end, l.breaks = l.breaks[0], l.breaks[1:]
	}
	for _, sequence := range l.sequences[:end] {
		if sequence+l.overlap < req.GetFromSequence() {
			continue
		}
		if err := stream.Send(&tilthv1.WatchJobResponse{Event: &tilthv1.JobEvent{Sequence: sequence}}); err != nil {
			return err
		}
	}
	if broken {
		return status.Error(codes.Unavailable, "tracker is stopping")
	}
	return nil
}

// serve serves jobs and returns a client.
func serve(t *testing.T, jobs tilthv1.JobServiceServer) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	lis, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	tilthv1.RegisterJobServiceServer(server, jobs)
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	c, err := Dial("unix:"+path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestWatchResumesAfterAnInterruption(t *testing.T) {
	for _, c := range []struct {
		name  string
		log   log
		from  uint64
		want  []uint64
		asked []uint64
	}{
		{"one stream", log{sequences: []uint64{1, 2, 3}}, 0, []uint64{1, 2, 3}, []uint64{1}},
		{"from the middle", log{sequences: []uint64{1, 2, 3}}, 3, []uint64{3}, []uint64{3}},
		{"broken off twice", log{sequences: []uint64{1, 2, 3, 4}, breaks: []int{2, 3}}, 0, []uint64{1, 2, 3, 4}, []uint64{1, 3, 4}},
		{"broken off before the first", log{sequences: []uint64{1, 2}, breaks: []int{0}}, 0, []uint64{1, 2}, []uint64{1, 1}},
		{"events sent again", log{sequences: []uint64{1, 2, 3}, breaks: []int{2}, overlap: 1}, 0, []uint64{1, 2, 3}, []uint64{1, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []uint64
			err := serve(t, &c.log).Watch(t.Context(), &tilthv1.WatchJobRequest{JobId: "j", FromSequence: c.from}, func(e *tilthv1.JobEvent) error {
				got = append(got, e.GetSequence())
				return nil
			}, nil)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
			if !slices.Equal(c.log.asked, c.asked) {
				t.Errorf("asked from %v, want %v", c.log.asked, c.asked)
			}
		})
	}
}

func TestWatchRefusesAGap(t *testing.T) {
	c := serve(t, &log{sequences: []uint64{1, 3}})
	err := c.Watch(t.Context(), &tilthv1.WatchJobRequest{JobId: "j"}, func(*tilthv1.JobEvent) error { return nil }, nil)
	if want := "watch job j: got event 3, want 2: the tracker's log has a gap"; errorText(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestWatchEndsWithItsCallbackAndItsContext(t *testing.T) {
	c := serve(t, &log{sequences: []uint64{1, 2}, breaks: []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}})
	enough := errors.New("enough")
	if err := c.Watch(t.Context(), &tilthv1.WatchJobRequest{JobId: "j"}, func(*tilthv1.JobEvent) error { return enough }, nil); !errors.Is(err, enough) {
		t.Errorf("error %v, want the visitor's", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	err := c.Watch(ctx, &tilthv1.WatchJobRequest{JobId: "j"}, func(*tilthv1.JobEvent) error {
		cancel(enough)
		return nil
	}, nil)
	if !errors.Is(err, enough) {
		t.Errorf("error %v, want the context's cause", err)
	}
}

// full is a tracker whose disk is full.
type full struct {
	tilthv1.UnimplementedJobServiceServer
}

func (full) CancelJob(context.Context, *tilthv1.CancelJobRequest) (*tilthv1.CancelJobResponse, error) {
	return nil, wire.Refuse(codes.Unavailable, wire.ReasonStopping, "tracker is stopping: no space left on device")
}

// TestErrorsKeepTheTrackersMessage is a regression test: errors of a stopping tracker looked as if no tracker existed.
func TestErrorsKeepTheTrackersMessage(t *testing.T) {
	c := serve(t, full{})
	_, err := c.Cancel(t.Context(), "j", "")
	want := "tracker " + c.Addr() + ": cancel job j: tracker is stopping: no space left on device"
	if errorText(err) != want || errors.Is(err, ErrUnreachable) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestErrorsNameTheRemedy(t *testing.T) {
	c, err := Dial("unix:"+filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Job(t.Context(), "j")
	if !errors.Is(err, ErrUnreachable) {
		t.Errorf("error %v, want ErrUnreachable", err)
	}
	served := serve(t, &log{})
	if _, err := served.Job(t.Context(), "j"); errorText(err) !=
		"show job j: tracker "+served.Addr()+" does not know this call: run the same version of tilth on both sides" {
		t.Errorf("error %v", err)
	}
}

// replaced is a job service whose history differs from the one that it sent before.
type replaced struct {
	tilthv1.UnimplementedJobServiceServer
	told *tilthv1.JobEvent
}

func (r *replaced) WatchJob(req *tilthv1.WatchJobRequest, stream grpc.ServerStreamingServer[tilthv1.WatchJobResponse]) error {
	if req.GetAfter() == nil {
		return errors.Join(stream.Send(&tilthv1.WatchJobResponse{Event: r.told}), status.Error(codes.Unavailable, "stopping"))
	}
	if req.GetFromSequence() != 2 || !proto.Equal(req.GetAfter(), r.told.GetAt()) {
		return status.Errorf(codes.Internal, "asked for %v", req)
	}
	return wire.Refuse(codes.FailedPrecondition, wire.ReasonHistory, "restored")
}

func TestWatchReportsAReplacedHistory(t *testing.T) {
	c := serve(t, &replaced{told: &tilthv1.JobEvent{Sequence: 1, At: timestamppb.New(time.Unix(7, 9))}})
	err := c.Watch(t.Context(), &tilthv1.WatchJobRequest{JobId: "j"}, func(*tilthv1.JobEvent) error { return nil }, nil)
	if !agent.History(err) {
		t.Errorf("error %v", err)
	}
}
