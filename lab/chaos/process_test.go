package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// process is a process of the farm, over all its lives.
type process struct {
	name string
	// command returns the command line of a life.
	command func(life int) []string
	// announces is set if the process prints a line once it serves.
	announces bool
	env       []string     // in addition to this process's
	log       string       // file of its standard error
	lives     func() int   // numbers the lives of all processes
	died      func(string) // called with an unexpected end

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
	asked bool          // whether its end was requested
	down  int           // number of active faults that keep it down
}

// start starts a life with the armed faults, unless one is running or a fault prevents it.
func (p *process) start(armed arming) error {
	return p.startWith(func() arming { return armed })
}

// startWith calls arm only if a life starts.
func (p *process) startWith(arm func() arming) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil || p.down > 0 {
		return nil
	}
	armed := arm()
	line := slices.Concat(armed.failSync(p.log+syncsSuffix), p.command(p.lives()))
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = slices.Concat(os.Environ(), p.env, []string{failpointVariable + "=" + armed.points})
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stderr = log
	var out io.ReadCloser
	if p.announces {
		if out, err = cmd.StdoutPipe(); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.cmd, p.ended, p.asked = cmd, make(chan struct{}), false
	serving := make(chan struct{})
	go p.reap(cmd, p.ended, out, serving)
	<-serving
	return nil
}

// reap waits for the end of a life.
func (p *process) reap(cmd *exec.Cmd, ended chan struct{}, out io.Reader, serving chan struct{}) {
	if out != nil {
		_, _ = bufio.NewReader(out).ReadString('\n') // the caller detects an earlier end
	}
	close(serving)
	err := cmd.Wait()
	p.mu.Lock()
	p.cmd = nil
	asked := p.asked
	p.mu.Unlock()
	close(ended)
	if !asked {
		p.died(fmt.Sprintf("%s ended: %v", p.name, err))
	}
}

// kill kills the process. While hold is set, no other life starts; see release.
func (p *process) kill(hold bool) {
	p.mu.Lock()
	if hold {
		p.down++
	}
	p.end(syscall.SIGKILL)
}

// terminate asks the process to end and waits. No other life starts; see release.
func (p *process) terminate() error {
	p.mu.Lock()
	p.down++
	p.mu.Unlock()
	return p.stop(drainTime)
}

// release removes a hold.
func (p *process) release() {
	p.mu.Lock()
	p.down--
	p.mu.Unlock()
}

// stop asks the process to end and waits. It kills the process and returns an error if that takes longer than within.
func (p *process) stop(within time.Duration) error {
	timer := time.AfterFunc(within, func() { p.kill(false) })
	p.mu.Lock()
	p.end(syscall.SIGTERM)
	if !timer.Stop() {
		return fmt.Errorf("%s did not end within %v of SIGTERM", p.name, within)
	}
	return nil
}

// end sends a signal that ends the process and waits. The caller holds the lock, which end releases.
func (p *process) end(s syscall.Signal) {
	cmd, ended := p.cmd, p.ended
	p.asked = true
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(s)
	_ = cmd.Process.Signal(syscall.SIGCONT) // a stopped process does not receive other signals
	<-ended
}

// signal sends a signal that does not end the process.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// drainTime is how long a process may take to end on request.
const drainTime = 20 * time.Second

// stopped reports whether all threads are stopped by SIGSTOP or a tracer.
func (p *process) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return true
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // already ended
		}
		_, state, _ := strings.Cut(string(text), ") ")
		if !strings.HasPrefix(strings.ToLower(state), "t") {
			return false
		}
	}
	return true
}

// Contents of a round's folder: the tracker's data, or what remained of them after the loss of their disk,
// and the journals.
const (
	dataName     = "data"
	keptName     = "data.kept"
	journalsName = "journals"
)

// farm holds the processes of a round.
type farm struct {
	dir     string
	tracker *process
	agents  []*process
	proxies []*proxy // one per agent, then the client's
	lives   int
	mu      sync.Mutex
	skews   []time.Duration // offsets of the simulated agents' wall clocks from the machine's
	// Farms of real agents have relays, which keep the journals, and credentials.
	relays  []*relay
	secrets string
}

// trackerName is the name of a single tracker, and the prefix of the names of several.
const trackerName = "tracker"

// kinds lists the farm's agents.
var kinds = []struct{ kind, name string }{
	{"tuner", "tuner-1"}, {"tuner", "tuner-2"}, {"builder", "builder-1"}, {"builder", "builder-2"},
	{"runner", "runner-1"}, {"runner", "runner-2"},
}

// newFarm creates a farm of simulated agents in a folder, without starting processes. died is called with
// unexpected ends.
func newFarm(dir, binary string, died func(string)) (*farm, error) {
	f := &farm{dir: dir, skews: make([]time.Duration, len(kinds))}
	if err := f.begin(binary, died); err != nil {
		return nil, err
	}
	for range len(kinds) + 1 {
		if err := f.addProxy("unix", f.socket()); err != nil {
			f.close()
			return nil, err
		}
	}
	for i, k := range kinds {
		f.agents = append(f.agents, &process{
			name: k.name, log: filepath.Join(dir, k.name+".log"), lives: f.life, died: died,
			command: func(life int) []string {
				return []string{
					binary, processArgument, "-kind", k.kind, "-name", k.name, "-life", strconv.Itoa(life), "-tracker", f.proxies[i].addr(), "-dir", f.journals(),
					"-skew", f.skews[i].String(),
				}
			},
		})
	}
	return f, nil
}

// newRealFarm creates a farm whose agents are the real program tilth. It uses TLS and tokens for agents and client. A
// relay runs between each agent's proxy and the tracker.
func newRealFarm(dir, binary, tilth string, died func(string)) (*farm, error) {
	f := &farm{dir: dir, secrets: filepath.Join(dir, "secrets")}
	if err := errors.Join(os.MkdirAll(f.secrets, 0o755), makeSecrets(f.secrets), f.begin(binary, died)); err != nil {
		return nil, err
	}
	for i, k := range kinds {
		r, err := newRelay(k.name, "unix:"+f.socket(), f.journals(), f.secrets)
		if err == nil {
			f.relays = append(f.relays, r)
			err = f.addProxy("tcp", r.addr())
		}
		if err != nil {
			f.close()
			return nil, err
		}
		f.agents = append(f.agents, &process{
			name: k.name, log: filepath.Join(dir, k.name+".log"), lives: f.life, died: died,
			env: []string{"TMPDIR=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CACHE_HOME=" + dir},
			command: func(int) []string {
				line := []string{
					tilth, k.kind, "--name", k.name, "--tracker", f.proxies[i].addr(), "--cache", filepath.Join(dir, "cache"),
					"--tls-ca", filepath.Join(f.secrets, authorityName), "--token-file", filepath.Join(f.secrets, agentToken),
				}
				if k.kind == "runner" {
					// A busy machine must not pause a device here.
					line = append(line, "--threads", "1", "--calibrate=false")
				}
				return line
			},
		})
	}
	if err := f.addProxy("unix", f.socket()); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// begin creates the farm's folders and tracker.
func (f *farm) begin(binary string, died func(string)) error {
	for _, name := range []string{f.data(), f.journals()} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			return err
		}
	}
	f.tracker = &process{
		name: trackerName, announces: true, log: filepath.Join(f.dir, "tracker.log"), lives: f.life, died: died,
		command: func(int) []string {
			return []string{binary, processArgument, "-kind", "tracker", "-tracker", "unix:" + f.socket(), "-dir", f.data(), "-secrets", f.secrets}
		},
	}
	return nil
}

func (f *farm) addProxy(network, address string) error {
	p, err := newProxy(func() (net.Conn, error) { return net.Dial(network, address) })
	if err == nil {
		f.proxies = append(f.proxies, p)
	}
	return err
}

// dial connects the client.
func (f *farm) dial() (*grpc.ClientConn, error) {
	var options []grpc.DialOption
	if f.secrets != "" {
		var err error
		if options, err = asClient(f.secrets); err != nil {
			return nil, err
		}
	}
	return dial(f.proxies[len(f.proxies)-1].addr(), options...)
}

func (f *farm) socket() string { return filepath.Join(f.dir, "tracker.sock") }

func (f *farm) data() string     { return filepath.Join(f.dir, dataName) }
func (f *farm) journals() string { return filepath.Join(f.dir, journalsName) }

func (f *farm) life() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lives++
	return f.lives
}

func (f *farm) processes() []*process { return append([]*process{f.tracker}, f.agents...) }

// start starts all processes.
func (f *farm) start(armed arming) error {
	if err := f.tracker.start(armed); err != nil {
		return err
	}
	for _, a := range f.agents {
		if err := a.start(arming{}); err != nil {
			return err
		}
	}
	return nil
}

// stop asks the agents to end, and then the tracker.
func (f *farm) stop() error {
	var ends sync.WaitGroup
	errs := make([]error, len(f.agents)+1)
	for i, a := range f.agents {
		ends.Go(func() { errs[i] = a.stop(drainTime) })
	}
	ends.Wait()
	errs[len(f.agents)] = f.tracker.stop(drainTime)
	return errors.Join(errs...)
}

// runFarm runs a round's jobs on a farm in a folder, with the client's interventions drawn from the seed. The
// tracker's first lives end at failpoints. The parent process injects all other faults.
func runFarm(ctx context.Context, dir, binary string, seed uint64, points []string) error {
	deaths := make(chan string, 100)
	f, err := newFarm(dir, binary, func(how string) { deaths <- how })
	if err != nil {
		return err
	}
	defer f.close()
	d := &draw{rand.New(rand.NewPCG(seed, 1)), points, faultsWithin}
	left := len(points) / 2
	arm := func() arming {
		if left--; left < 0 {
			return arming{}
		}
		return arming{points: fmt.Sprintf("%s=%d:sleep:60000", d.points[d.IntN(len(d.points))], 1+int(d.ExpFloat64()*12))}
	}
	interventions := d.interventions(jobsPerRound)
	if err := f.start(arm()); err != nil {
		return err
	}
	keeping, stopKeeping := context.WithCancel(ctx)
	killing, stopKilling := context.WithCancel(ctx)
	var kept, killed sync.WaitGroup
	var keepErr error
	kept.Go(func() { keepErr = f.keepTracker(keeping, arm) })
	killed.Go(func() { f.killAtPoints(killing) })
	_, err = f.follow(ctx, 0, interventions, jobSpec)
	stopKeeping()
	kept.Wait()
	err = errors.Join(err, keepErr, f.stop())
	stopKilling()
	killed.Wait()
	if err != nil {
		return err
	}
	if len(deaths) > 0 {
		return errors.New(<-deaths)
	}
	return nil
}

// killAtPoints kills the tracker while it sleeps at a failpoint. It first stops the tracker until all its
// threads' calls have ended, because strace does not report whether a call interrupted by the end of the
// process took effect.
func (f *farm) killAtPoints(ctx context.Context) {
	fired := 0
	for retry.Sleep(ctx, 20*time.Millisecond) == nil {
		log, _ := os.ReadFile(f.tracker.log) // it exists once there is output
		now := 0
		for _, times := range firedFailpoints(string(log)) {
			now += times
		}
		if now > fired {
			fired = now
			f.tracker.signal(syscall.SIGSTOP)
			f.awaitStandstill(ctx)
			f.tracker.kill(false)
		}
	}
}

// awaitStandstill returns once the stopped tracker has been idle for a number of this process's own traced
// calls: strace has then reported all earlier ones.
func (f *farm) awaitStandstill(ctx context.Context) {
	for still := 0; still < 20 && retry.Sleep(ctx, 5*time.Millisecond) == nil; still++ {
		if !f.tracker.stopped() {
			still = 0
		}
		_ = os.WriteFile(filepath.Join(f.dir, "beat"), []byte{byte(still)}, 0o644) // a traced call
	}
}

// close ends all remaining processes.
func (f *farm) close() {
	for _, p := range f.processes() {
		p.kill(true)
	}
	for _, p := range f.proxies {
		p.close()
	}
	for _, r := range f.relays {
		r.close()
	}
	f.relays = nil
}

// follow runs the client; see the function follow.
func (f *farm) follow(ctx context.Context, life int, interventions []intervention, spec func(n int) *tilthv1.JobSpec) (map[string][]*tilthv1.JobEvent, error) {
	conn, err := f.dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return follow(ctx, conn, f.journals(), life, interventions, spec)
}

// keepTracker restarts the tracker whenever it ends, until ctx ends. armed returns the faults of the next
// life.
func (f *farm) keepTracker(ctx context.Context, armed func() arming) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := f.tracker.startWith(armed); err != nil {
				return err
			}
		}
	}
}
