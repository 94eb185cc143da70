package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// entry is a line of a journal: a call that is about to be made (Request), or its answer (Answer or Code).
type entry struct {
	// At is the machine's monotonic clock, which all processes share, in nanoseconds.
	At int64 `json:"at"`
	// Agent and Life name the process, Call the call within it.
	Agent string `json:"agent"`
	Life  int    `json:"life"`
	Call  uint64 `json:"call"`
	// Method is that of the wire, as in "/tilth.v1.AgentService/Join".
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	// Code is the status of a call that failed, and Reason that of the tracker's refusal.
	Code   string `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// journal is a file of entries that survive the process.
type journal struct {
	agent string
	life  int

	mu   sync.Mutex
	file *os.File
	call uint64
}

func openJournal(path, agent string, life int) (*journal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return &journal{agent: agent, life: life, file: f}, nil
}

// next numbers a call.
func (j *journal) next() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.call++
	return j.call
}

// write adds a line. A journal that cannot be written proves nothing, so its process must not go on.
func (j *journal) write(e entry) error {
	e.At, e.Agent, e.Life = monotonic(), j.agent, j.life
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func (j *journal) close() error { return j.file.Close() }

// readJournal returns the entries of a file. A last line that was cut short by the end of its process is left out.
func readJournal(path string) (entries []entry, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("journal %s, line %d: %w", path, len(entries)+1, err)
		}
		entries = append(entries, e)
	}
}

// monotonic is the time since the machine started, in nanoseconds, whatever is done to its calendar.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // only a clock that the kernel does not have
	}
	return t.Nano()
}
