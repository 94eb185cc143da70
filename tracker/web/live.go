package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Bounds on streams that tell of changes, of all and of who asks, and how often they do.
const (
	mostStreams        = 256
	mostStreamsOfAsker = 32
	// changedEvery is how often a change of a job is told at most.
	changedEvery = time.Second
	// lookEvery is how often lists are to be loaded again, and how often it is asked whether who listens still may.
	lookEvery = 5 * time.Second
	// streamStall is how long a peer may take to take what it is told.
	streamStall = 10 * time.Second
)

// begin counts a stream, if there may be one more.
func (s *streams) begin(asker string) (end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= mostStreams || s.byAsker[asker] >= mostStreamsOfAsker {
		return nil, false
	}
	s.open++
	s.byAsker[asker]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if s.byAsker[asker]--; s.byAsker[asker] == 0 {
			delete(s.byAsker, asker)
		}
	}, true
}

// asker is who asks for a stream: an identity, or a host where nobody is asked who they are.
func asker(r *http.Request) string {
	if id, is := access.From(r.Context()); is {
		return "identity " + id.Name
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// endOf is the error of a stream that has ended; nil for its end.
func endOf(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// live tells, for as long as it is listened to, that the page is to be loaded again: of a job when it has events, of
// others every few seconds. It ends with the session.
func (s *Site) live(w http.ResponseWriter, r *http.Request) error {
	end, ok := s.streams.begin(asker(r))
	if !ok {
		return status.Error(codes.Unavailable, "there are too many streams of changes: load the page again to see them")
	}
	defer end()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	changes := make(chan struct{}, 1)
	var over chan struct{}
	id := r.URL.Query().Get("job")
	if id != "" {
		j, err := s.getJob(ctx, id)
		if err != nil {
			return err
		}
		var next uint64
		if err := s.view(ctx, j, func(f *follow) { next = f.next }); err != nil {
			return err
		}
		over = make(chan struct{})
		go func() {
			defer close(over)
			s.watch(ctx, id, next, changes)
		}()
		defer func() {
			cancel()
			<-over
		}()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	return s.tell(w, r, id == "", changes, over)
}

// watch has every change of a job told, until it ends or can be watched no more: the page that is loaded then says
// why.
func (s *Site) watch(ctx context.Context, id string, next uint64, changes chan<- struct{}) {
	stream, err := s.jobs.WatchJob(ctx, &tilthv1.WatchJobRequest{JobId: id, FromSequence: next, Several: true, Status: true})
	for err == nil {
		if _, err = stream.Recv(); err == nil {
			select {
			case changes <- struct{}{}:
			default:
			}
		}
	}
}

// tell writes a line for each change, or every few seconds, until the stream is over.
func (s *Site) tell(w http.ResponseWriter, r *http.Request, regularly bool, changes <-chan struct{}, over <-chan struct{}) error {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // that of a request would end the stream
	write := func(line string) error {
		_ = c.SetWriteDeadline(time.Now().Add(streamStall))
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
		return c.Flush()
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	pace := time.NewTicker(changedEvery)
	defer pace.Stop()
	err := write("retry: 5000\n: changes of this page\n\n")
	for err == nil {
		var due <-chan struct{}
		select {
		case <-pace.C:
			due = changes
		case <-look.C:
			if s.Door.Valid(r) != nil {
				return nil
			}
			line := ": nothing changed\n\n"
			if regularly {
				line = "data: changed\n\n"
			}
			err = write(line)
		case <-over:
			_ = write("event: end\ndata: changed\n\n")
			return nil
		case <-r.Context().Done():
			return nil
		}
		select {
		case <-due:
			err = write("data: changed\n\n")
		default:
		}
	}
	return nil
}
