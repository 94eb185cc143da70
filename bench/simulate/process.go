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

// process is a tracker in a process of its own, which may be killed and started again at the same address.
type process struct {
	command []string
	dir     string

	mu    sync.Mutex
	cmd   *exec.Cmd
	addr  addresses
	early usage // of the processes that were killed before
}

// usage is what a process took since it began. CPU is in seconds.
type usage struct {
	CPU     float64
	Commits float64
	// PeakRSS and RSS count all resident pages, those of the mapped records file included; Anonymous does not.
	PeakRSS, RSS, Anonymous int64
}

// start starts the tracker and returns once it serves.
func (p *process) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	listen := p.addr.GRPC
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	cmd := exec.CommandContext(ctx, p.command[0], append(p.command[1:len(p.command):len(p.command)], "--data", p.dir, "--listen", listen)...)
	// The tracker stops when this ends, which it does with this process.
	if _, err := cmd.StdinPipe(); err != nil {
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
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &p.addr)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		err = errors.Join(err, cmd.Wait())
		return fmt.Errorf("start the tracker: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	p.cmd = cmd
	return nil
}

// kill ends the tracker at once, as a power cut would but for what the kernel holds. Killing it again changes nothing.
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
	_ = p.cmd.Wait() // it says that it was killed
	p.cmd = nil
	return nil
}

// usage sums up all the processes so far.
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
	commits, err := readCommits(p.addr.HTTP)
	if err != nil {
		return u, err
	}
	u.CPU += now.CPU
	u.Commits += commits
	u.RSS, u.Anonymous, u.PeakRSS = now.RSS, now.Anonymous, max(u.PeakRSS, now.PeakRSS)
	return u, nil
}

// readCommits asks the tracker how many transactions it wrote.
func readCommits(addr string) (float64, error) {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get("http://" + addr + "/metrics")
	if err != nil {
		return 0, fmt.Errorf("read the tracker's metrics: %w", err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "tilth_tracker_commit_seconds_count "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.Join(errors.New("the tracker's metrics do not tell its commits"), lines.Err())
}
