package farm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/sandbox"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/runner"
	"github.com/tilth-dev/tilth/runner/boards"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

// LocalOwner owns the jobs of single-process farms. Such a job ends with its process.
const LocalOwner = "local"

// maxSocketPath is the kernel's limit for the path of a unix socket, less the terminating zero and a margin.
const maxSocketPath = 100

// localDrainGrace is short because a local farm stops only after its job has ended, when the remaining work
// is useless.
const localDrainGrace = time.Millisecond

// LocalConfig configures a single-process farm.
type LocalConfig struct {
	// Records is the records file.
	Records string
	// CacheDir holds caches for later runs.
	CacheDir string
	// Models provides the tuner's cost models.
	Models transfer.Models
	// Target is the target to tune for: this machine, or a subset of its features.
	Target    *target.Target
	Toolchain *toolchain.Toolchain
	// Board is RunnerConfig.Board.
	Board *boards.Board
	// OwnKernels allows the hand-written kernels of the job.
	OwnKernels bool
	// Lock is AgentConfig.Lock.
	Lock *hostlock.Lock
	// Meter is required if the target's objective is energy; nil selects the machine's meter.
	Meter *runner.EnergyMeter
	// Sandbox is RunnerConfig.Sandbox.
	Sandbox sandbox.Mode
	Version string
	Logger  *slog.Logger
}

// Local is a tracker, a tuner, a builder and a runner in this process, connected by a private socket.
type Local struct {
	// Client is connected to the tracker.
	Client *client.Client

	store records.Store
	// own holds the socket and the artifacts; scratch, below the cache folder, the agents' scratch files.
	own, scratch *tempDir

	life   context.Context
	agents sync.WaitGroup
	// stopAgents is called before the tracker stops, so that the agents can leave the farm.
	stopAgents  context.CancelFunc
	fail        context.CancelCauseFunc
	trackerDone chan struct{}
	// retract removes the notice that this farm uses the records file.
	retract func() error
}

// Scratch returns a folder for temporary files, which exists until Stop or the next farm after a crash.
func (l *Local) Scratch() string { return l.scratch.dir }

// Prefer stores preferences (see records.Prefer), which no tracker accepts from outside.
func (l *Local) Prefer(ctx context.Context, preferred []*tilthv1.Record) error {
	var w records.Write
	for _, r := range preferred {
		w.AddRecord(r)
	}
	return l.store.Commit(&w).Wait(ctx)
}

// StartLocal starts the services. It cancels jobs in the records file that a killed process left open, and
// returns an error if jobs of another farm are open there.
func StartLocal(ctx context.Context, cfg LocalConfig) (*Local, error) {
	if cfg.Target.Objective == target.Energy && cfg.Meter == nil {
		var err error
		if cfg.Meter, err = runner.MachineMeter(""); err != nil {
			return nil, fmt.Errorf("local farm: %w", err)
		}
	}
	own, err := newTempDir(socketParent(), "tilth-farm-")
	if err != nil {
		return nil, fmt.Errorf("local farm: %w", err)
	}
	scratch, err := newTempDir(filepath.Join(cfg.CacheDir, "scratch"), "farm-")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("local farm: %w", err), own.remove())
	}
	life, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	l := &Local{own: own, scratch: scratch, life: life, fail: fail, trackerDone: make(chan struct{}), stopAgents: func() {}, retract: func() error { return nil }}
	cfg.Logger = slog.New(untilFailure{cfg.Logger.Handler(), life})
	if err := l.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// socketParent returns the folder for temporary files, unless its name is too long for the path of a socket.
func socketParent() string {
	if dir := os.TempDir(); len(dir) < maxSocketPath-40 {
		return dir
	}
	return "/tmp"
}

func (l *Local) start(ctx context.Context, cfg LocalConfig) error {
	socket := "unix:" + filepath.Join(l.own.dir, "tracker.sock")
	if err := l.startTracker(cfg, socket); err != nil {
		return err
	}
	if err := records.Announce(cfg.Records, strings.TrimPrefix(socket, "unix:")); err != nil {
		cfg.Logger.Warn("other processes cannot read the records during the job", "error", err) // for example, the folder is read-only
	} else {
		l.retract = func() error { return records.Retract(cfg.Records) }
	}
	var err error
	if l.Client, err = client.Dial(socket, cfg.Logger); err != nil {
		return err
	}
	if err := l.closeLeftOvers(ctx, cfg.Records); err != nil {
		return err
	}
	return l.startAgents(cfg, socket)
}

// startTracker starts the tracker and returns when it accepts calls.
func (l *Local) startTracker(cfg LocalConfig, socket string) error {
	ready := make(chan struct{})
	go func() {
		defer close(l.trackerDone)
		err := RunTracker(l.life, TrackerConfig{
			Records: cfg.Records, Listen: socket, Opened: func(s records.Store) { l.store = s }, Ready: func(net.Addr, net.Addr) { close(ready) },
			Tracker: tracker.Config{
				ArtifactsDir: filepath.Join(l.own.dir, "artifacts"), Logger: cfg.Logger,
				Failing: func(err error) { l.fail(fmt.Errorf("tracker: %w", err)) },
			},
		})
		l.fail(err)
	}()
	select {
	case <-ready:
		return nil
	case <-l.trackerDone:
		return context.Cause(l.life)
	}
}

func (l *Local) closeLeftOvers(ctx context.Context, file string) error {
	jobs, _, err := l.Client.ListJobs(ctx, client.JobFilter{States: []tilthv1.JobState{tilthv1.JobState_JOB_STATE_QUEUED, tilthv1.JobState_JOB_STATE_RUNNING}})
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if job.GetSpec().GetOwner() != LocalOwner {
			return fmt.Errorf("records file %s: job %s of a farm is open in it: start its tracker and use --tracker, or name another file",
				file, job.GetId())
		}
		if _, err := l.Client.Cancel(ctx, job.GetId(), "its process was killed"); err != nil {
			return err
		}
	}
	return nil
}

func (l *Local) startAgents(cfg LocalConfig, socket string) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("local farm: %w", err)
	}
	ctx, stop := context.WithCancel(l.life)
	l.stopAgents = stop
	common := AgentConfig{
		Tracker: socket, CacheDir: cfg.CacheDir, DrainGrace: localDrainGrace, Version: cfg.Version, Lock: cfg.Lock, Logger: cfg.Logger,
	}
	named := func(kind string) AgentConfig {
		own := common
		// The name is always the same, so that agents do not accumulate in the records file, which admits one
		// farm at a time. Farms with different records files may share the cache folder, so scratch folders
		// cannot be named after the agent.
		own.Name, own.ScratchDir = host+"/local/"+kind, filepath.Join(l.scratch.dir, kind)
		return own
	}
	builds := &buildFailureGuard{end: l.fail}
	l.startAgent(func() error { return RunTuner(ctx, TunerConfig{AgentConfig: named("tuner"), Models: cfg.Models}) })
	l.startAgent(func() error {
		return RunBuilder(ctx, BuilderConfig{
			OwnKernels: cfg.OwnKernels,

			AgentConfig: named("builder"), Toolchain: cfg.Toolchain, Parallel: runtime.NumCPU(), Sandbox: cfg.Sandbox, Built: builds.built,
		})
	})
	l.startAgent(func() error {
		return RunRunner(ctx, RunnerConfig{AgentConfig: named("runner"), Targets: []*target.Target{cfg.Target}, Meter: cfg.Meter, Board: cfg.Board, Sandbox: cfg.Sandbox})
	})
	return nil
}

func (l *Local) startAgent(run func() error) {
	l.agents.Go(func() {
		if err := run(); err != nil {
			l.fail(err)
		}
	})
}

// Bound returns a context that ends with ctx, or when a service fails, with its error as the cause.
func (l *Local) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.life, func() { cancel(context.Cause(l.life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// errStopped is the cause of a requested stop.
var errStopped = errors.New("local farm stopped")

// Stop stops the services, agents first, and waits for them. It returns the first failure of a service.
func (l *Local) Stop() error {
	l.stopAgents()
	l.agents.Wait()
	if l.Client != nil {
		l.Client.Close()
	}
	retracted := l.retract()
	l.fail(errStopped)
	<-l.trackerDone
	err := context.Cause(l.life)
	if errors.Is(err, errStopped) {
		err = nil
	}
	return errors.Join(err, retracted, l.own.remove(), l.scratch.remove())
}

// tempDir is a folder that is removed with its process. The next process removes the folder of a killed one.
type tempDir struct {
	dir   string
	claim *os.File // locked while the process lives
}

// newTempDir creates a folder in parent whose name begins with prefix. It first removes such folders that no
// process holds, except those of other users.
func newTempDir(parent, prefix string) (*tempDir, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	for {
		dir, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		claim, err := hold(dir)
		if errors.Is(err, errTaken) {
			continue // another process removed it before it was locked
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		sweep(parent, prefix)
		return &tempDir{dir: dir, claim: claim}, nil
	}
}

// errTaken is returned by hold if another process holds or has removed the folder.
var errTaken = errors.New("folder is taken")

// hold locks a folder. If it returns no error, the folder still exists.
func hold(dir string) (*os.File, error) {
	f, err := lockFolder(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, errors.Join(errTaken, f.Close())
	}
	return f, nil
}

// lockFolder opens and locks a folder. It returns EWOULDBLOCK if another process holds it.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweep removes folders of killed processes, on a best-effort basis.
func sweep(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if claim, err := hold(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = claim.Close()
		}
	}
}

// remove removes the folder.
func (p *tempDir) remove() error {
	if p == nil {
		return nil
	}
	return errors.Join(os.RemoveAll(p.dir), p.claim.Close())
}

const (
	// minMemoryBytes is the memory that a tracker may use before garbage collection becomes more frequent.
	// A tracker with 10,000 connected agents has more than half of it in use.
	minMemoryBytes = 960 << 20
	// memoryInterval is the interval at which the limit is adjusted.
	memoryInterval = 5 * time.Second
)

// limitMemory keeps the memory of the process below a limit, or below five quarters of the memory in use if
// that is more, until ctx ends. By default the collector would allow twice the memory in use, including
// stacks. GOMEMLIMIT overrides this limit.
func limitMemory(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	before := debug.SetMemoryLimit(minMemoryBytes)
	defer debug.SetMemoryLimit(before)
	tick := time.Tick(memoryInterval)
	inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		metrics.Read(inUse)
		used := int64(inUse[0].Value.Uint64() + inUse[1].Value.Uint64())
		debug.SetMemoryLimit(max(minMemoryBytes, used+used/4))
	}
}
