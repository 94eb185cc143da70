package loadtest

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

	"github.com/tilth-dev/tilth/lab/bench"
)

// process is a tracker in a separate process. It can be killed and restarted at the same address.
type process struct {
	command []string
	orders  orders

	mu    sync.Mutex
	peer  *bench.Peer
	addr  addresses
	early usage // of killed processes
}

// usage holds a process's totals. CPU is in seconds.
type usage struct {
	CPU float64
	// Commits counts transactions of a file.
	Commits float64
	// PeakRSS counts all resident pages, including the mapped records file; Anonymous excludes file pages.
	PeakRSS, Anonymous int64
}

// start starts the tracker and waits until it answers.
func (p *process) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	orders, err := json.Marshal(p.orders)
	if err != nil {
		return err
	}
	// The tracker stops when its input ends, also if this process is killed.
	cmd := exec.CommandContext(ctx, p.command[0], p.command[1:]...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	peer, err := bench.Start("the tracker", cmd)
	if err != nil {
		return err
	}
	if err := peer.AskJSON(string(orders), &p.addr); err != nil {
		peer.Kill()
		return fmt.Errorf("start the tracker: %w: %s", errors.Join(err, peer.Close()), strings.TrimSpace(complaint.String()))
	}
	p.peer, p.orders.Listen = peer, p.addr.GRPC
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
	if p.peer == nil {
		return nil
	}
	p.early = last
	p.peer.Kill()
	_ = p.peer.Close() // it reports that it was killed
	p.peer = nil
	return nil
}

// usage returns the sum over all processes so far.
func (p *process) usage() (usage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.early
	if p.peer == nil {
		return u, nil
	}
	now, err := readUsage(p.peer.PID())
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
	u.Anonymous, u.PeakRSS = now.Anonymous, max(u.PeakRSS, now.PeakRSS)
	return u, nil
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
