package web

import (
	"context"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// stalled is a tracker whose streams signal their start and end when released.
type stalled struct {
	grpc.ClientConnInterface
	asked, letGo chan struct{}
}

func (s stalled) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return stalledStream{conn: s}, nil
}

type stalledStream struct {
	grpc.ClientStream
	conn stalled
}

func (stalledStream) SendMsg(any) error { return nil }
func (stalledStream) CloseSend() error  { return nil }
func (s stalledStream) RecvMsg(any) error {
	s.conn.asked <- struct{}{}
	<-s.conn.letGo
	return io.EOF
}

// TestCancelledReadersDoNotWaitForOthers checks that an ended request does not wait for another's read.
func TestCancelledReadersDoNotWaitForOthers(t *testing.T) {
	conn := stalled{asked: make(chan struct{}, 2), letGo: make(chan struct{})}
	s := &Site{jobs: tilthv1.NewJobServiceClient(conn), follows: follows{byJob: map[string]*follow{}}}
	job := &tilthv1.Job{Id: "job-1", Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{{Name: "conv", Weight: 1}}}}
	read := make(chan error)
	go func() { read <- s.view(t.Context(), job, func(*follow) {}) }()
	<-conn.asked
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.view(ended, job, func(*follow) { t.Error("it looks while another reads") }); status.Code(err) != codes.Canceled {
		t.Errorf("a page that nobody waits for: %v", err)
	}
	close(conn.letGo)
	if err := <-read; err != nil {
		t.Error(err)
	}
	if err := s.view(t.Context(), job, func(*follow) {}); err != nil {
		t.Errorf("the page after that: %v", err)
	}
}

func TestBestOfEachTaskIsItsOwn(t *testing.T) {
	f := &follow{}
	f.reset(&tilthv1.Job{Spec: &tilthv1.JobSpec{Tasks: []*tilthv1.TaskSpec{{Name: "a"}, {Name: "b"}, {Name: "c"}}}})
	f.points = []point{{task: 0, best: 3}, {task: 1, best: 9}, {task: 0}, {task: 0, best: 2}, {task: 1, best: 8}}
	for i, want := range [][]float64{{3, 2}, {9, 8}, nil} {
		if got := f.bests()[i]; !slices.Equal(got, want) {
			t.Errorf("task %d: %v, want %v", i, got, want)
		}
	}
}

// TestThinnedTrialsAreEvenlySpaced is a regression test: early trials were thinned out repeatedly until a task with
// early trials had none left. Improvements must stay, including the best.
func TestThinnedTrialsAreEvenlySpaced(t *testing.T) {
	const all, tenths = 12*maxPoints + 7, 10
	f := &follow{every: 1}
	best := 1.0
	for i := range all {
		p := point{trial: uint32(i), latency: 2, best: best}
		if i%10_000 == 5000 {
			best /= 2
			p.latency, p.best = best, best
		}
		if f.keep(p); len(f.points) > maxPoints {
			t.Fatalf("%d trials are kept", len(f.points))
		}
	}
	kept, improvements := [tenths + 1]int{}, 0
	for _, p := range f.points {
		kept[int(p.trial)/(all/tenths)]++
		if p.improves() {
			improvements++
		}
	}
	for i, n := range kept[:tenths] {
		if share := len(f.points) / tenths; n < share*9/10 || n > share*11/10 {
			t.Errorf("of the %d trials that are kept, %d are of tenth %d", len(f.points), n, i)
		}
	}
	if improvements != all/10_000 {
		t.Errorf("%d improvements are kept of %d", improvements, all/10_000)
	}
	for i := range all { // each better than the last
		f.keep(point{trial: uint32(i), latency: 1 / float64(i+1), best: 1 / float64(i+1)})
	}
	if n := len(f.points); n > maxPoints || f.points[n-1].trial != all-1 {
		t.Errorf("%d improvements are kept, the last is of trial %d", n, f.points[n-1].trial)
	}
}
