package simulate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// process is a tracker in a separate process. It can be killed and restarted at the same address.
type process struct {
	command []string
	orders  orders

	mu    sync.Mutex
	cmd   *exec.Cmd
	addr  addresses
	early usage // of killed processes
}

// usage holds a process's totals. CPU is in seconds.
type usage struct {
	CPU float64
	// Commits counts transactions of a file.
	Commits float64
	// PeakRSS and RSS count all resident pages, including the mapped records file; Anonymous excludes file pages.
	PeakRSS, RSS, Anonymous int64
}

// start starts the tracker and waits until it answers.
func (p *process) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := exec.CommandContext(ctx, p.command[0], p.command[1:]...)
	// The tracker stops when this pipe closes, also if this process is killed.
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start the tracker: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start the tracker: %w", err)
	}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the tracker: %w", err)
	}
	_ = json.NewEncoder(in).Encode(p.orders) // an exited process reports the cause
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &p.addr)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		err = errors.Join(err, cmd.Wait())
		return fmt.Errorf("start the tracker: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	p.cmd, p.orders.Listen = cmd, p.addr.GRPC
	return nil
}

// kill kills the tracker. Data in the kernel's cache survive, unlike after a power cut. It is a no-op on a killed
// tracker.
func (p *process) kill() error {
	last, err := p.usage()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	p.early = last
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it reports that it was killed
	p.cmd = nil
	return nil
}

// usage returns the sum over all processes so far.
func (p *process) usage() (usage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.early
	if p.cmd == nil {
		return u, nil
	}
	now, err := readUsage(p.cmd.Process.Pid)
	if err != nil {
		return u, err
	}
	if p.orders.Store == "" {
		commits, err := readMetric(p.addr.HTTP, "tilth_tracker_commit_seconds_count")
		if err != nil {
			return u, err
		}
		u.Commits += commits
	}
	u.CPU += now.CPU
	u.RSS, u.Anonymous, u.PeakRSS = now.RSS, now.Anonymous, max(u.PeakRSS, now.PeakRSS)
	return u, nil
}

// shards returns the number of the tracker's shards.
func (p *process) shards() (int, error) {
	n, err := readMetric(p.addr.HTTP, "tilth_tracker_active")
	return int(n), err
}

// readMetric reads a metric of a tracker. It sums per-shard metrics.
func readMetric(addr, name string) (sum float64, err error) {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get("http://" + addr + "/metrics")
	if err != nil {
		return 0, fmt.Errorf("read the tracker's metrics: %w", err)
	}
	defer response.Body.Close()
	found := false
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		rest, is := strings.CutPrefix(lines.Text(), name)
		at := strings.LastIndexByte(rest, ' ')
		if !is || at < 0 || at > 0 && rest[0] != '{' {
			continue
		}
		value, err := strconv.ParseFloat(rest[at+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("read the tracker's metrics: %w", err)
		}
		found = true
		sum += value
	}
	if err := lines.Err(); err != nil || !found {
		return 0, errors.Join(fmt.Errorf("the tracker's metrics do not tell %s", name), err)
	}
	return sum, nil
}
