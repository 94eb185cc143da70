package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Entry is one line of the audit log.
type Entry struct {
	Time time.Time `json:"time"`
	// Verb is what was asked for: a service and its call, such as JobService.CancelJob, or the method and path of a
	// page.
	Verb string `json:"verb"`
	// Who asked, in what role, and what proved it; empty when nobody is asked who they are, or nothing was proved.
	Who   string `json:"who,omitempty"`
	Role  string `json:"role,omitempty"`
	Proof string `json:"proof,omitempty"`
	// From is the peer's address.
	From string `json:"from"`
	// What has the request's own words: job_id, name, reason and the like.
	What map[string]string `json:"what,omitempty"`
	// Result is OK, or the code of the refusal or failure, which Message explains.
	Result  string `json:"result"`
	Message string `json:"message,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"took_s"`
}

// Log is an audit log. Its methods may be called from many goroutines; those of a nil Log do nothing.
//
// When a line cannot be written, it goes to the tracker's own log, and Ready fails until lines can be written again:
// who changes something asks it first. So what may go missing here are the lines of calls that were under way when
// writing began to fail, and those are in the other log.
type Log struct {
	log *slog.Logger

	mu  sync.Mutex
	out io.WriteCloser
	// Since the last line that was written.
	failure error
	missed  int
}

// New makes an audit log of a writer, which gets each line in one call and either takes all of it or fails. Logger
// hears of lines that cannot be written.
func New(out io.WriteCloser, logger *slog.Logger) *Log { return &Log{out: out, log: logger} }

// Ready says why nothing can be written; nil when it can.
func (l *Log) Ready() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		return nil
	}
	missed := l.missed
	err := l.write(Entry{
		Time: time.Now().UTC(), Verb: "audit.resume", Result: "OK",
		Message: fmt.Sprintf("%d lines before this one could not be written; they are in the tracker's log", missed),
	})
	if err == nil {
		l.log.Info("the audit log is written again", "missed", missed)
	}
	return err
}

// Add writes a line.
func (l *Log) Add(e Entry) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.write(e); err != nil {
		l.missed++
		l.log.Error("audit line not written", "error", err, "verb", e.Verb, "who", e.Who, "role", e.Role, "proof", e.Proof,
			"from", e.From, "what", e.What, "result", e.Result, "message", e.Message)
	}
}

// write writes one line. The caller holds the lock.
func (l *Log) write(e Entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.out.Write(append(line, '\n'))
	}
	if err != nil {
		l.failure = fmt.Errorf("the audit log cannot be written: %w", err)
		return l.failure
	}
	l.failure, l.missed = nil, 0
	return nil
}

// Close closes the writer.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = errors.New("the audit log is closed")
	return l.out.Close()
}
