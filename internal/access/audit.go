package access

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
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

// AuditFile is a rotated log file: FILE, and before it FILE.1, FILE.2 and so on, the oldest last. A crash of the
// process leaves whole lines. A crash of the machine may cut the last line of FILE, because writes are not synced.
type AuditFile struct {
	path     string
	maxBytes int64
	keep     int

	file *os.File
	size int64
}

// Defaults of OpenAuditFile.
const (
	DefaultAuditBytes = 64 << 20
	DefaultAuditFiles = 8
)

// OpenAuditFile opens the file at path for appending and creates it if necessary. The file is rotated at maxBytes
// bytes (0 = DefaultAuditBytes); keep rotated files are retained (0 = DefaultAuditFiles).
func OpenAuditFile(path string, maxBytes int64, keep int) (*AuditFile, error) {
	f := &AuditFile{path: path, maxBytes: cmp.Or(maxBytes, DefaultAuditBytes), keep: cmp.Or(keep, DefaultAuditFiles)}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("audit log: %w: make its folder, or name another file", err)
	}
	return f, nil
}

func (f *AuditFile) open() error {
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write implements io.Writer for one line. After a short write it truncates the file to the lines before.
func (f *AuditFile) Write(line []byte) (int, error) {
	if f.file == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	if f.size > 0 && f.size+int64(len(line)) > f.maxBytes {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(line)
	if err != nil {
		// A partial line would corrupt the next one.
		return 0, errors.Join(err, f.file.Truncate(f.size))
	}
	f.size += int64(n)
	return n, nil
}

// rotate renames the full files and opens an empty one. If it fails midway, the next call continues: a missing name
// has already been renamed.
func (f *AuditFile) rotate() error {
	err := f.file.Close()
	f.file = nil
	if err != nil {
		return err
	}
	for i := f.keep - 1; i >= 0; i-- {
		if err := os.Rename(f.name(i), f.name(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f.open()
}

func (f *AuditFile) name(i int) string {
	if i == 0 {
		return f.path
	}
	return fmt.Sprintf("%s.%d", f.path, i)
}

// Close implements io.Closer.
func (f *AuditFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
