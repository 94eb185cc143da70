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

// entry is a line of a journal: a call about to be made (Request), or its outcome (Answer or Code).
type entry struct {
	// At is the time of the machine's monotonic clock, which all processes share, in nanoseconds.
	At int64 `json:"at"`
	// Agent and Life identify the process, Call the call within it.
	Agent string `json:"agent"`
	Life  int    `json:"life"`
	Call  uint64 `json:"call"`
	// Method is the name on the wire, such as "/tilth.v1.AgentService/Join".
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	// Code is the status of a failed call, and Reason the tracker's reason of a refusal.
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

// next returns the number of the next call.
func (j *journal) next() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.call++
	return j.call
}

// write appends a line. The process must not continue after an error, because an incomplete journal proves nothing.
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

// readJournal returns the entries of a file. It ignores a truncated last line, left by a killed process.
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

// monotonic returns the time since the machine started in nanoseconds. It ignores changes of the wall clock.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // unreachable: the kernel has this clock
	}
	return t.Nano()
}
