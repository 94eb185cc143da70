package models

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// settlePoll is how long a process must use no processor time to count as idle. The kernel counts in ticks of 10 ms.
const (
	settlePoll = 30 * time.Millisecond
	settleMax  = 2 * time.Second
)

// settle waits until the contender's process is idle. Threads of a pool may spin for a while after their last work,
// which would take processor time from the next contender.
func (c *contender) settle() error {
	before := ""
	for deadline := time.Now().Add(settleMax); time.Now().Before(deadline); time.Sleep(settlePoll) {
		used, err := processorTime(c.cmd.Process.Pid)
		if err != nil || used == before {
			return err
		}
		before = used
	}
	return fmt.Errorf("%s does not become idle after its turn", c.name)
}

// processorTime returns the ticks that a process used, in user and kernel mode (proc(5), fields 14 and 15).
func processorTime(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return "", fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields))
	}
	return fields[11] + " " + fields[12], nil
}
