package connlimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// awaitAnswers waits until the memory of answers is as wanted.
func awaitAnswers(t *testing.T, g *Guard, what string, wanted func(heldBytes int64) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !wanted(g.AnswerBytes()); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("answers take %d bytes, want %s", g.AnswerBytes(), what)
		}
	}
}

// answersGone waits until no answer uses memory.
func answersGone(t *testing.T, g *Guard) {
	t.Helper()
	awaitAnswers(t, g, "none", func(held int64) bool { return held == 0 })
}

// ask makes calls with empty requests.
func (s *speaker) ask(t *testing.T, calls int, method string) {
	t.Helper()
	for i := range calls {
		stream := uint32(2*i + 1)
		if err := errors.Join(s.begin(t, stream, method), s.WriteData(stream, true, []byte{0, 0, 0, 0, 0})); err != nil {
			t.Fatal(err)
		}
	}
}

// ends waits until the server has ended a number of calls.
func (s *speaker) ends(t *testing.T, calls int) {
	t.Helper()
	for calls > 0 {
		f, err := s.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if h, is := f.(*http2.HeadersFrame); is && h.StreamEnded() {
			calls--
		}
	}
}

// TestUnreadAnswersAreBoundedPerConnection is a regression test: a client that downloaded without reading grew a
// tracker from 31 MiB to 14 GiB.
func TestUnreadAnswersAreBoundedPerConnection(t *testing.T) {
	const total, calls, answerBytes = 8 << 20, 64, 64 << 10
	for _, method := range []string{"Echo", "Flood"} {
		t.Run(method, func(t *testing.T) {
			s := &service{flooding: make([]byte, answerBytes)}
			addr := start(t, Limits{AnswerBytes: total, MemoryWait: 100 * time.Millisecond}, s)
			c := speak(t, addr, 0)
			c.ask(t, calls, method)
			c.ends(t, calls-total/8/answerBytes) // the other answers stay buffered
			if held := s.guard.AnswerBytes(); held > total/8 || held < total/16 {
				t.Errorf("%d bytes are held", held)
			}
			if err := echo(t.Context(), dial(t, addr), 0); err != nil {
				t.Errorf("on another connection: %v", err)
			}
			c.Close()
			answersGone(t, s.guard)
		})
	}
}

func TestAnswersBeingReadAreNotRefused(t *testing.T) {
	s := &service{flooding: make([]byte, 1<<20)}
	conn := dial(t, start(t, Limits{AnswerBytes: 16 << 20, MemoryWait: patience}, s))
	failed := make(chan error)
	for range 40 { // concurrently, twenty times the limit of a connection
		go func() { failed <- echo(t.Context(), conn, 0) }()
	}
	for range 40 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	answersGone(t, s.guard)
}

// TestAnswersReserveMemoryFirst checks that memory for an answer is reserved before the answer is made, per caller and
// in total.
func TestAnswersReserveMemoryFirst(t *testing.T) {
	s := &service{block: make(chan struct{})}
	addr := start(t, Limits{AnswerBytes: 8 << 20, MemoryWait: 100 * time.Millisecond}, s)
	done := make(chan error)
	call := func(caller string) error {
		return echo(metadata.AppendToOutgoingContext(t.Context(), "name", caller, "answer", fmt.Sprint(1<<20)), dial(t, addr), 0)
	}
	for range 2 {
		go func() { done <- call("alice") }()
	}
	awaitAnswers(t, s.guard, "those of two", func(held int64) bool { return held >= 2<<20 })
	if err := call("alice"); status.Code(err) != codes.Unavailable {
		t.Errorf("a third answer at once, where two take a caller's quarter: %v", err)
	}
	go func() { done <- call("bob") }()
	awaitAnswers(t, s.guard, "those of three", func(held int64) bool { return held >= 3<<20 })
	close(s.block)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	answersGone(t, s.guard)
}

func TestPagesReserveMemoryFirst(t *testing.T) {
	g := New(Config{Limits: Limits{AnswerBytes: 8 << 20, MemoryWait: time.Millisecond}})
	var inner int
	var page http.Handler
	page = g.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if inner++; inner < 10 {
			page.ServeHTTP(w, r) // during the other request
		}
	}), func(*http.Request) int { return 1 << 20 }, func(*http.Request) string { return "alice" }, func(w http.ResponseWriter, err error) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusServiceUnavailable || inner != 2 {
		t.Errorf("%d pages of an eighth of the room were made at once for one caller, then %d", inner, w.Code)
	}
	answersGone(t, g)
}
