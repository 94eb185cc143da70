package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

var (
	shardRounds = flag.Int("shard-rounds", 1, "how many rounds with trackers that share a database")
	sideBySide  = flag.Int("side-by-side", 2, "how many of those at once")
)

const (
	someShards  = 4
	maxTrackers = 3
	// shardJobs is two per shard.
	shardJobs = 2 * someShards
	// shardFaultsWithin is several times the time after which a silent tracker loses its shards.
	shardFaultsWithin = 12 * time.Second
	// shardPatience includes a transaction's full timeout, after which a tracker detects a silent server.
	shardPatience = 10 * time.Minute
	// grpcPort is the port of each tracker on its host.
	grpcPort = ":9190"
)

// shardBoundaries lists the failpoints of a tracker with shards.
var shardBoundaries = []string{
	"beforeCommit", "afterCommit", "beforeAnswer", "beforeArtifactSync", "beforeArtifactRename", "afterArtifactRename",
}

// TestPromisesHoldOfTrackersThatShareADatabase is the campaign for farms whose records are in a database with a hot
// standby. All trackers, agents and servers have their own hosts.
func TestPromisesHoldOfTrackersThatShareADatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs farms of hosts with a replicated database")
	}
	t.Parallel() // mostly waits
	binary := buildProgram(t)
	c := newCampaign(t, "shards")
	seeds := make(chan uint64)
	var all sync.WaitGroup
	for range *sideBySide {
		all.Go(func() {
			for n := range seeds {
				t.Run(fmt.Sprint("seed ", n), func(t *testing.T) {
					c.runIn(t, n, func(dir string) (*Result, error) { return newShardRound(t, n, dir, binary).run() })
				})
			}
		})
	}
	for n := range uint64(*shardRounds) {
		if *limit > 0 && time.Since(c.began) > *limit {
			break
		}
		seeds <- *seed + n
	}
	close(seeds)
	all.Wait()
	c.logTotals()
}

// shardRound is a round of a farm whose trackers share a database.
type shardRound struct {
	*testing.T
	incidents
	draw     *shardDraw
	dir      string
	net      *network
	database *cluster
	trackers []*process
	agents   []*process
	clocks   []*clocks

	mu    sync.Mutex
	lives int
	armed map[int]arming // for the next life of each tracker
}

// newShardRound creates a round's hosts, servers and processes without starting processes. The end of the test
// removes all of them.
func newShardRound(t *testing.T, seed uint64, dir, binary string) *shardRound {
	t.Helper()
	r := &shardRound{T: t, dir: dir, incidents: incidents{counts: map[string]int{}}, armed: map[int]arming{}}
	r.draw = newShardDraw(&draw{rand.New(rand.NewPCG(seed, 2)), shardBoundaries, shardFaultsWithin})
	r.net = newNetwork(t, r.draw.hosts...)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Fatal("nft is not installed: run scripts/packages.sh test")
	}
	if err := r.net.change(0, nil); err != nil {
		t.Skipf("this kernel's bridges have no filters: %v", err)
	}
	for _, folder := range []string{r.data(), r.journals()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.database = newCluster(t, r.net)
	var addresses []string
	for n := range r.draw.trackers {
		addresses = append(addresses, r.net.addr(trackerAt(n))+grpcPort)
	}
	for n, address := range addresses {
		p := r.newProcess(trackerAt(n), binary, func(int) []string {
			return []string{processArgument, "-kind", "tracker", "-name", trackerAt(n), "-tracker", address, "-dir", r.data(), "-store", r.database.address, "-shards", strconv.Itoa(someShards)}
		})
		p.announces = true
		r.trackers = append(r.trackers, p)
		r.clocks = append(r.clocks, &clocks{tracker: p, path: filepath.Join(r.data(), trackerAt(n)+".clock"), pace: 1})
	}
	for i, k := range kinds {
		r.agents = append(r.agents, r.newProcess(k.name, binary, func(life int) []string {
			return []string{
				processArgument, "-kind", k.kind, "-name", k.name, "-life", strconv.Itoa(life), "-tracker", strings.Join(addresses, ","), "-dir", r.journals(),
				"-skew", r.draw.skewed[i].String(),
			}
		}))
	}
	t.Cleanup(func() {
		for _, p := range r.processes() {
			p.kill(true)
		}
	})
	return r
}

func (r *shardRound) newProcess(host, binary string, arguments func(life int) []string) *process {
	return &process{
		name: host, log: filepath.Join(r.dir, host+".log"), lives: r.life, died: r.died,
		command: func(life int) []string {
			return append([]string{"ip", "netns", "exec", r.net.space(host), binary}, arguments(life)...)
		},
	}
}

func trackerAt(n int) string { return fmt.Sprint(trackerName, "-", n+1) }

func (r *shardRound) data() string     { return filepath.Join(r.dir, dataName) }
func (r *shardRound) journals() string { return filepath.Join(r.dir, journalsName) }

func (r *shardRound) life() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lives++
	return r.lives
}

// processes returns all processes, trackers first.
func (r *shardRound) processes() []*process {
	return append(append([]*process{}, r.trackers...), r.agents...)
}

// run injects the faults and checks the result. An error means that the round did not end, which also breaks a
// promise.
func (r *shardRound) run() (*Result, error) {
	faults := drawFaults(r.draw, shardFaultKinds)
	if f := r.draw.failover(); f != nil {
		faults = append(faults, f)
	}
	interventions := r.draw.interventions(shardJobs)
	for n := range interventions {
		interventions[n].from = r.draw.span(0, r.draw.within/2)
	}
	result := &Result{Counts: r.counts, Faults: []string{fmt.Sprintf("%d trackers", len(r.trackers))}}
	for _, c := range r.clocks {
		if description := c.draw(r.draw.draw); description != "" {
			result.Faults = append(result.Faults, description)
			r.happened("tracker's time at another pace")
		}
	}
	for i, skew := range r.draw.skewed {
		if skew != 0 {
			result.Faults = append(result.Faults, fmt.Sprintf("the calendar of %s is wrong by %v", kinds[i].name, skew))
			r.happened("agent's calendar wrong")
		}
	}
	result.Faults = append(result.Faults, describeIncidents(&r.incidents, faults, interventions)...)
	watched, err := r.live(faults, interventions)
	if err == nil {
		err = r.stop()
	}
	if err != nil {
		return result, err
	}
	kept := farmData{data: r.data(), database: r.database.socket(), shards: someShards}
	if err := r.database.settle(r.Context()); err != nil {
		return result, err
	}
	fenced, err := r.database.checkFences(r.Context(), result)
	if err != nil {
		return result, err
	}
	if result.Verdict, err = check(kept, r.journals(), watched); err != nil {
		return result, err
	}
	result.Violations = append(append(result.Violations, fenced...), r.crashes(r.processes(), byFailpoint)...)
	return result, r.countFired(result)
}

// live runs the farm's jobs while faults are injected.
func (r *shardRound) live(faults []*faultOf[*shardRound], interventions []intervention) (map[string][]*tilthv1.JobEvent, error) {
	ctx, cancel := withPatience(r.Context(), shardPatience)
	defer cancel()
	keeping, stopKeeping := context.WithCancel(ctx)
	var kept, injecting sync.WaitGroup
	defer kept.Wait()
	defer stopKeeping()
	for n, p := range r.trackers {
		kept.Go(func() { r.keep(keeping, n, p) })
	}
	kept.Go(func() { r.database.keep(keeping) })
	for _, a := range r.agents {
		if err := a.start(arming{}); err != nil {
			return nil, err
		}
	}
	for _, f := range faults {
		injecting.Go(func() { inject(ctx, r, f) })
	}
	defer injecting.Wait()
	conn, err := r.net.dialTrackers(clientHost, len(r.trackers))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return follow(ctx, conn, r.journals(), 0, interventions, shardJob)
}

// shardJob returns the specification of the n-th job. Its owner belongs to shard n modulo the number of shards.
func shardJob(n int) *tilthv1.JobSpec {
	spec := jobSpec(n)
	for i := 0; ; i++ {
		if spec.Owner = fmt.Sprint("team-", i); wire.ShardOfOwner(spec.GetOwner(), someShards) == n%someShards {
			return spec
		}
	}
}

// keep restarts a tracker with its armed faults whenever it ends, until ctx ends.
func (r *shardRound) keep(ctx context.Context, n int, p *process) {
	for {
		if err := p.startWith(func() arming { return r.takeArmed(n) }); err != nil {
			r.died("start: " + err.Error())
		}
		if retry.Sleep(ctx, 300*time.Millisecond) != nil {
			return
		}
	}
}

// arm restarts a tracker with faults.
func (r *shardRound) arm(n int, armed arming) {
	r.mu.Lock()
	r.armed[n] = armed
	r.mu.Unlock()
	r.trackers[n].kill(false)
}

func (r *shardRound) takeArmed(n int) (armed arming) {
	r.mu.Lock()
	defer r.mu.Unlock()
	armed, r.armed[n] = r.armed[n], arming{}
	return armed
}

// stop asks the agents and then the trackers to end.
func (r *shardRound) stop() error {
	var failed []error
	for _, group := range [][]*process{r.agents, r.trackers} {
		errs := make([]error, len(group))
		var ends sync.WaitGroup
		for i, p := range group {
			ends.Go(func() { errs[i] = p.stop(drainTime) })
		}
		ends.Wait()
		failed = append(failed, errs...)
	}
	return errors.Join(failed...)
}

// countFired counts the failpoints that fired and the changes of shards in the trackers' logs.
func (r *shardRound) countFired(result *Result) error {
	for _, p := range r.trackers {
		text, err := os.ReadFile(p.log)
		if err != nil {
			return err
		}
		countLog(string(text), result.Counts)
	}
	return nil
}
