package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Limits and intervals of streams that announce changes, in total and per client.
const (
	maxStreams        = 256
	maxStreamsOfAsker = 32
	// changedEvery is the minimum interval between announcements of a job's changes.
	changedEvery = time.Second
	// lookEvery is the refresh interval of lists, and of checks that a client may still listen.
	lookEvery = 5 * time.Second
	// streamStall is how long a client may take to accept a write.
	streamStall = 10 * time.Second
)

// begin counts a stream, unless a limit is reached. The caller must call end.
func (s *streams) begin(asker string) (end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= maxStreams || s.byAsker[asker] >= maxStreamsOfAsker {
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

// asker identifies the client of a stream: its identity or, without authentication, its host.
func asker(r *http.Request) string {
	if id, is := access.From(r.Context()); is {
		return "identity " + id.Name
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// live streams announcements that the page should be reloaded: a job's page when the job has events, others every few
// seconds. It ends with the session.
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
	return s.writeChanges(w, r, id == "", changes, over)
}

// watch announces every change of a job until the job ends or watching fails; the reloaded page then shows the reason.
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

// writeChanges writes a line for each change, or periodically, until the stream ends.
func (s *Site) writeChanges(w http.ResponseWriter, r *http.Request, regularly bool, changes <-chan struct{}, over <-chan struct{}) error {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // the request's deadline would end the stream
	write := func(line string) error {
		_ = c.SetWriteDeadline(time.Now().Add(streamStall))
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
		return c.Flush()
	}
	look := time.Tick(lookEvery)
	pace := time.NewTicker(changedEvery)
	defer pace.Stop()
	err := write("retry: 5000\n: changes of this page\n\n")
	for err == nil {
		var due <-chan struct{}
		select {
		case <-pace.C:
			due = changes
		case <-look:
			if s.Auth.Valid(r) != nil {
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
