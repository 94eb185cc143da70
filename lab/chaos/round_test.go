package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// jobsPerRound is the number of jobs in each round.
const jobsPerRound = 3

// patience limits the rest of a round after all faults are over.
const patience = 2 * time.Minute

// Round configures a round of a campaign.
type Round struct {
	// Seed determines its faults.
	Seed uint64
	// Dir is its folder, which must be empty or absent.
	Dir string
	// Binary is the program of its processes, and Points lists its failpoints.
	Binary string
	Points []string
	// Tilth, if set, is the program of real agents. Spec then returns the jobs.
	Tilth string
	Spec  func(n int) *tilthv1.JobSpec
	// Restored makes the farm lose its records and continue with a backup.
	Restored bool

	// calm disables the drawn faults. lives then holds the failpoints of the tracker's lives, in turn.
	calm  bool
	lives []string
	lost  *loss
}

// Result is the result of a round.
type Result struct {
	// Faults describes the injected faults, and Counts counts them by kind.
	Faults []string
	Counts map[string]int
	// Verdict is the checker's verdict.
	Verdict
}

// round is the state of a running Round.
type round struct {
	Round
	draw    *draw
	farm    *farm
	ownDisk bool

	incidents
	clocks *clocks

	mu    sync.Mutex
	armed arming // for the tracker's next life
}

// Run subjects a farm to a round's faults and checks the result. An error means that the round could not run
// or did not end, which breaks a promise, too.
func (o Round) Run(ctx context.Context) (_ *Result, err error) {
	r := &round{Round: o, draw: &draw{rand.New(rand.NewPCG(o.Seed, 1)), o.Points, faultsWithin}, incidents: incidents{counts: map[string]int{}}}
	if o.Tilth != "" {
		r.draw.within = realFaultsWithin
		r.farm, err = newRealFarm(o.Dir, o.Binary, o.Tilth, r.died)
	} else {
		r.Spec = jobSpec
		r.farm, err = newFarm(o.Dir, o.Binary, r.died)
	}
	if err != nil {
		return nil, err
	}
	defer r.farm.close()
	r.clocks = &clocks{tracker: r.farm.tracker, path: filepath.Join(r.farm.data(), clockName), pace: 1}
	r.mountDisk()
	defer func() { err = errors.Join(err, r.saveData()) }()
	var faults []*fault
	interventions := make([]intervention, jobsPerRound)
	if !o.calm {
		faults = drawFaults(r.draw, faultKinds)
		interventions = r.draw.interventions(jobsPerRound)
	}
	result := &Result{Counts: r.counts}
	if !o.calm {
		result.Faults = append(result.Faults, r.setClocks()...)
	}
	if o.Restored {
		r.lost = r.draw.loss()
	}
	if r.lost != nil {
		result.Faults = append(result.Faults, r.lost.String())
	}
	result.Faults = append(result.Faults, describeIncidents(&r.incidents, faults, interventions)...)
	if err := os.WriteFile(filepath.Join(o.Dir, "faults"), []byte(strings.Join(result.Faults, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	watched, err := r.live(ctx, faults, interventions)
	if err != nil {
		return result, err
	}
	if err := r.farm.stop(); err != nil {
		return result, err
	}
	result.Verdict, err = check(farmData{data: r.farm.data()}, r.farm.journals(), watched)
	err = errors.Join(err, r.countFired())
	result.Violations = append(result.Violations, r.crashes(r.farm.processes(), byItsOwnWord)...)
	return result, err
}

// live runs the farm's jobs while faults are injected, and returns the jobs' events as a client saw them.
func (r *round) live(ctx context.Context, faults []*fault, interventions []intervention) (map[string][]*tilthv1.JobEvent, error) {
	ctx, cancel := withPatience(ctx, patience)
	defer cancel()
	if err := r.farm.start(r.takeArmed()); err != nil {
		return nil, err
	}
	keeping, stopKeeping := context.WithCancel(ctx)
	var kept sync.WaitGroup
	var keepErr error
	kept.Go(func() { keepErr = r.farm.keepTracker(keeping, r.takeArmed) })
	defer kept.Wait()
	defer stopKeeping()
	var injecting sync.WaitGroup
	for _, f := range faults {
		injecting.Go(func() { inject(ctx, r, f) })
	}
	watched, err := r.follow(ctx, interventions)
	injecting.Wait()
	stopKeeping()
	kept.Wait()
	return watched, errors.Join(err, keepErr)
}

// withPatience returns a context that ends when patience runs out. It counts ticks instead of time, because jobs
// cannot progress while the machine itself is suspended.
func withPatience(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	const beat = 100 * time.Millisecond
	ctx, cancel := context.WithCancelCause(ctx)
	ticker := time.NewTicker(beat)
	var counting sync.WaitGroup
	counting.Go(func() {
		defer ticker.Stop()
		for range patience / beat {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
		cancel(errors.New("the jobs did not end in time after all faults were over"))
	})
	return ctx, func() {
		cancel(nil)
		counting.Wait()
	}
}

// follow submits the jobs over a connection and follows them to their ends, as a client whose calls may fail. There is
// one job per intervention, which follow performs on it. It returns the events and also writes them to files as they
// arrive.
func follow(ctx context.Context, conn *grpc.ClientConn, journals string, life int, interventions []intervention, spec func(n int) *tilthv1.JobSpec) (map[string][]*tilthv1.JobEvent, error) {
	j, err := openJournal(filepath.Join(journals, "client.journal"), "client", life)
	if err != nil {
		return nil, err
	}
	defer j.close()
	w := &journalingConn{conn, j}
	var mu sync.Mutex
	var following sync.WaitGroup
	watched, errs := map[string][]*tilthv1.JobEvent{}, make([]error, len(interventions))
	for n := range interventions {
		following.Go(func() {
			if errs[n] = retry.Sleep(ctx, interventions[n].from); errs[n] != nil {
				return
			}
			id, err := submit(ctx, w, n, spec(n))
			if err != nil {
				errs[n] = fmt.Errorf("submit job %d: %w", n, err)
				return
			}
			following.Go(func() { interventions[n].perform(ctx, w, id) })
			looking, stop := context.WithCancel(ctx)
			defer stop()
			following.Go(func() { look(looking, w, id) })
			events, err := watch(ctx, conn, id, filepath.Join(journals, id+seenSuffix))
			mu.Lock()
			defer mu.Unlock()
			watched[id], errs[n] = events, err
		})
	}
	following.Wait()
	return watched, errors.Join(errs...)
}

// seenSuffix is the suffix of a file with a job's events, one per line.
const seenSuffix = ".seen"

// watch returns a job's events, and writes each to a file when it arrives.
func watch(ctx context.Context, conn grpc.ClientConnInterface, id, path string) (events []*tilthv1.JobEvent, err error) {
	seen, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer seen.Close()
	err = agent.Watch(ctx, conn, quiet, &tilthv1.WatchJobRequest{JobId: id}, func(e *tilthv1.JobEvent) error {
		events = append(events, e)
		line, err := protojson.Marshal(e)
		if err != nil {
			return err
		}
		_, err = seen.Write(append(line, '\n'))
		return err
	}, nil)
	if err != nil {
		return events, fmt.Errorf("watch job %s: %w", id, err)
	}
	return events, nil
}

// readSeen returns the events that clients saw of each job.
func readSeen(journals string) (map[string][]*tilthv1.JobEvent, error) {
	paths, err := filepath.Glob(filepath.Join(journals, "*"+seenSuffix))
	if err != nil {
		return nil, err
	}
	out := map[string][]*tilthv1.JobEvent{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		id := strings.TrimSuffix(filepath.Base(path), seenSuffix)
		for line := range strings.Lines(string(text)) {
			e := &tilthv1.JobEvent{}
			if err := protojson.Unmarshal([]byte(line), e); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			out[id] = append(out[id], e)
		}
	}
	return out, nil
}

var quiet = slog.New(slog.DiscardHandler)

// submit submits the n-th job twice, which must return the same job.
func submit(ctx context.Context, w *journalingConn, n int, spec *tilthv1.JobSpec) (id string, err error) {
	request := &tilthv1.SubmitJobRequest{RequestId: fmt.Sprintf("request-%d", n), Spec: spec}
	for range 2 {
		err := retry.Do(ctx, quiet, impatient, "SubmitJob", func(ctx context.Context) error {
			answer, err := tilthv1.NewJobServiceClient(w).SubmitJob(ctx, request)
			id = answer.GetJob().GetId()
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return id, nil
}

// jobSpec returns the specification of the n-th job.
func jobSpec(n int) *tilthv1.JobSpec {
	spec := &tilthv1.JobSpec{
		Name: fmt.Sprintf("pretended-%d", n), Owner: "chaos", Tuner: algorithm, Seed: uint64(n),
		Target: &tilthv1.TargetSpec{Fingerprint: fingerprint, Toolchain: toolchain, DeviceClass: deviceClass, Descriptor_: []byte("{}")},
		Budget: &tilthv1.Budget{Trials: jobTrials},
	}
	for i := range jobTasks {
		w := fmt.Appendf(nil, "tilth-workload 1\n%d\n", n+i) // shared with the next job
		spec.Tasks = append(spec.Tasks, &tilthv1.TaskSpec{Name: fmt.Sprint(i), Workload: w, WorkloadDigest: records.Digest(w), Weight: 1, Flop: 1e9})
	}
	return spec
}

func (r *round) process(n int) *process {
	if n < 0 {
		return r.farm.tracker
	}
	return r.farm.agents[n]
}

// revive restarts a killed process. keepTracker restarts the tracker.
func (r *round) revive(n int) {
	p := r.process(n)
	p.release()
	if n < 0 {
		return
	}
	if err := p.start(arming{}); err != nil {
		r.died(err.Error())
	}
}

// arm restarts the tracker with faults.
func (r *round) arm(armed arming) {
	r.mu.Lock()
	r.armed = armed
	r.mu.Unlock()
	r.farm.tracker.kill(false)
}

func (r *round) takeArmed() arming {
	r.mu.Lock()
	defer r.mu.Unlock()
	armed := r.armed
	r.armed = arming{}
	if armed == (arming{}) && len(r.lives) > 0 {
		armed, r.lives = arming{points: r.lives[0]}, r.lives[1:]
	}
	return armed
}

// countFired counts the failpoints that fired, the failed syncs, and the artifacts that the tracker found damaged.
func (r *round) countFired() error {
	syncs, err := failedSyncs(r.farm.tracker.log + syncsSuffix)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(r.farm.tracker.log)
	if err != nil {
		return nil // no log was written
	}
	for name, times := range firedFailpoints(string(text)) {
		r.counts["failpoint "+name] += times
	}
	for what, times := range map[string]int{
		"syncs that failed":             syncs,
		"artifacts found to be damaged": strings.Count(string(text), "artifact damaged"),
	} {
		if times > 0 {
			r.counts[what] += times
		}
	}
	return nil
}

// saveData copies the tracker's data from its small disk to the round's folder.
func (r *round) saveData() error {
	if !r.ownDisk {
		return nil
	}
	r.farm.close()
	saved := filepath.Join(r.Dir, keptName)
	err := os.CopyFS(saved, os.DirFS(r.farm.data()))
	return errors.Join(err, unix.Unmount(r.farm.data(), unix.MNT_DETACH))
}
