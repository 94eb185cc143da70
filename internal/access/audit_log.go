package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// AuditEntry is one line of the audit log.
type AuditEntry struct {
	Time time.Time `json:"time"`
	// Verb is the service and method that was called, such as JobService.CancelJob, or the method and path of a page.
	Verb string `json:"verb"`
	// Who, Role and Proof identify the caller. They are empty if the tracker is open or the caller proved nothing.
	Who   string `json:"who,omitempty"`
	Role  string `json:"role,omitempty"`
	Proof string `json:"proof,omitempty"`
	// From is the peer's address.
	From string `json:"from"`
	// What has the fields of the request: job_id, name, reason and the like.
	What map[string]string `json:"what,omitempty"`
	// Result is OK or the code of the refusal or failure, which Message explains.
	Result  string `json:"result"`
	Message string `json:"message,omitempty"`
	// Seconds is the duration of the call.
	Seconds float64 `json:"took_s"`
}

// AuditLog is an audit log. Its methods may be called concurrently; those of a nil AuditLog do nothing.
//
// If a line cannot be written, it goes to the tracker's own log, and Ready fails until writing succeeds again. Calls
// that change state ask Ready first, so only lines of calls in progress when writing began to fail can be missing
// here, and those are in the tracker's log.
type AuditLog struct {
	log *slog.Logger

	mu  sync.Mutex
	out io.WriteCloser
	// failure and missed are the error and the number of lines lost since the last successful write.
	failure error
	missed  int
}

// NewAuditLog returns an audit log that writes to out. out receives each line in one Write, which accepts all of it or
// fails. Lines that cannot be written are logged to logger.
func NewAuditLog(out io.WriteCloser, logger *slog.Logger) *AuditLog {
	return &AuditLog{out: out, log: logger}
}

// Ready returns why lines cannot be written, or nil if they can.
func (l *AuditLog) Ready() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		return nil
	}
	missed := l.missed
	err := l.write(AuditEntry{
		Time: time.Now().UTC(), Verb: "audit.resume", Result: "OK",
		Message: fmt.Sprintf("%d lines before this one could not be written; they are in the tracker's log", missed),
	})
	if err == nil {
		l.log.Info("the audit log is written again", "missed", missed)
	}
	return err
}

// Add writes a line.
func (l *AuditLog) Add(e AuditEntry) {
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

// write writes one line. l.mu must be held.
func (l *AuditLog) write(e AuditEntry) error {
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
func (l *AuditLog) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = errors.New("the audit log is closed")
	return l.out.Close()
}
