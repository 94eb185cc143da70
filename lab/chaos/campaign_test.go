package chaos

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	rounds = flag.Int("rounds", 3, "how many rounds")
	seed   = flag.Uint64("seed", 1, "the seed of the first round; the others follow")
	keep   = flag.String("keep", "", "folder for the rounds that fail; empty = a new one for temporary files")
	limit  = flag.Duration("limit", 0, "begin no round after so long; 0 = no limit")
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == processArgument {
		binary = os.Args[0]
		os.Exit(processMain(os.Args[2:]))
	}
	flag.Parse()
	scratch, err := os.MkdirTemp("", "tilth-chaos")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(scratch, "process")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(scratch)
		os.Exit(code)
	}))
}

// binary is the path of the farms' program: these tests, with failpoints. It is built once.
var (
	binary string
	built  sync.Once
)

// failpointPackages lists the packages with failpoints.
var failpointPackages = []string{
	"go.etcd.io/bbolt", "github.com/tilth-dev/tilth/records/bolt", "github.com/tilth-dev/tilth/tracker/coordinator", "github.com/tilth-dev/tilth/internal/artifact",
	"github.com/tilth-dev/tilth/records/postgres",
}

// boundaries lists the failpoints around a commit, in order of execution, and those around an upload.
var boundaries = []string{
	"beforeTransaction", "lackOfDiskSpace", "resizeFileError", "beforeSyncDataPages", "beforeWriteMetaError", "beforeSyncMetaPage", "afterTransaction", "beforeAnswer",
	"beforeArtifactSync", "failedArtifactSync", "beforeArtifactRename", "afterArtifactRename",
}

func buildProgram(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		names, err := buildWithFailpoints(t.Context(), ".", failpointPackages, slices.Concat([]string{"test", "-c", "-o", binary}, raceFlags))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Concat(boundaries, shardBoundaries) {
			if !slices.Contains(names, name) {
				t.Errorf("failpoint %s is nowhere: there are %v", name, names)
			}
		}
	})
	return binary
}

// TestPromisesHoldUnderFaults is the campaign. A failed round prints its seed and keeps its folder. -rounds 1 -seed N
// repeats its faults.
func TestPromisesHoldUnderFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs farms of processes under faults")
	}
	t.Parallel() // mostly waits
	binary := buildProgram(t)
	c := newCampaign(t, "seed")
	for c.done < *rounds && (*limit == 0 || time.Since(c.began) < *limit) {
		n := *seed + uint64(c.done)
		c.run(Round{Seed: n, Binary: binary, Points: boundaries, Restored: n%3 == 0})
	}
	c.logTotals()
}

// campaign runs rounds and sums up their results.
type campaign struct {
	*testing.T
	dir   string // parent of the rounds' folders
	name  string // prefix of their names
	began time.Time

	mu    sync.Mutex
	total *Result
	done  int
}

// newCampaign creates a campaign with a unique folder.
func newCampaign(t *testing.T, name string) *campaign {
	t.Helper()
	c := &campaign{T: t, dir: *keep, name: name, began: time.Now(), total: &Result{Counts: map[string]int{}}}
	if c.dir != "" {
		return c
	}
	var err error
	if c.dir, err = os.MkdirTemp("", "chaos-"); err != nil { // a socket's path must be short
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(c.dir) }) // fails if rounds are kept
	return c
}

// run runs a round in a new folder, which is kept if the round fails.
func (c *campaign) run(o Round) {
	c.Helper()
	c.runIn(c.T, o.Seed, func(dir string) (*Result, error) {
		o.Dir = dir
		return o.Run(c.Context())
	})
}

// runIn is run for a special kind of round. It is safe for concurrent use.
func (c *campaign) runIn(t *testing.T, seed uint64, round func(dir string) (*Result, error)) {
	t.Helper()
	dir := filepath.Join(c.dir, fmt.Sprintf("%s-%d", c.name, seed))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	result, err := round(dir)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	if result == nil {
		result = &Result{}
	}
	c.total.add(result)
	if err != nil || len(result.Violations) > 0 {
		t.Errorf("seed %d, kept in %s: %v\n%s\nfaults:\n%s", seed, dir, err, strings.Join(first(result.Violations, 10), "\n"), strings.Join(result.Faults, "\n"))
		return
	}
	t.Logf("seed %d: %d trials, %d measured, %d dead letters, %d jobs cancelled, %d failed", seed, result.Trials, result.Executions, result.DeadLetters, result.Cancelled, result.Failed)
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

func (c *campaign) logTotals() {
	c.Helper()
	r := c.total
	c.Logf("%d rounds in %v: %d jobs, %d candidates, %d builds, %d measurements acknowledged and %d leases arrived; %d trials recorded, measured %d times; %d dead letters, %d jobs cancelled, %d failed, %d requests about jobs, %d histories undecided",
		c.done, time.Since(c.began).Round(time.Second), r.Jobs, r.Candidates, r.Builds, r.Measurements, r.Leases,
		r.Trials, r.Executions, r.DeadLetters, r.Cancelled, r.Failed, r.Requests, r.Undecided)
	for _, kind := range slices.Sorted(maps.Keys(r.Counts)) {
		c.Logf("%6d %s", r.Counts[kind], kind)
	}
}

// TestNothingIsLostAtAnyCommitBoundary kills the tracker at each boundary of a commit and an upload in turn, and
// makes writes fail there. A busy machine commits larger batches, so jobs may end before the last boundaries. Another
// round covers those.
func TestNothingIsLostAtAnyCommitBoundary(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: kills a tracker at each boundary of a commit")
	}
	t.Parallel() // mostly waits
	binary := buildProgram(t)
	lives := boundaryLives()
	for seed := uint64(1); len(lives) > 0; seed++ {
		o := Round{Seed: seed, Dir: t.TempDir(), Binary: binary, calm: true}
		for _, l := range lives {
			o.lives = append(o.lives, l.armed())
		}
		result, err := o.Run(t.Context())
		if err != nil || len(result.Violations) > 0 {
			t.Fatalf("%v\n%s", err, strings.Join(first(result.Violations, 10), "\n"))
		}
		before := len(lives)
		for kind, times := range result.Counts {
			for range times {
				k := slices.IndexFunc(lives, func(l boundaryLife) bool { return "failpoint "+l.point == kind })
				if k < 0 {
					t.Fatalf("%s fired more often than it was armed: %v", kind, result.Counts)
				}
				lives = slices.Delete(lives, k, k+1)
			}
		}
		if len(lives) == before {
			t.Fatalf("none of %v fired in a whole round", lives)
		}
	}
}

// boundaryLife is a life of the tracker with a fault at the n-th execution of a failpoint.
type boundaryLife struct {
	point, action string
	at            int
}

func (l boundaryLife) armed() string { return fmt.Sprintf("%s=%d:%s", l.point, l.at, l.action) }

func boundaryLives() (lives []boundaryLife) {
	for _, point := range boundaries {
		switch {
		case point == "resizeFileError": // the file rarely grows that large
		case strings.Contains(point, "Artifact"):
			lives = append(lives, boundaryLife{point, "kill", 2})
		default:
			lives = append(lives, boundaryLife{point, "kill", 6})
		}
	}
	return append(lives, boundaryLife{"lackOfDiskSpace", "error:no space left on device", 6},
		boundaryLife{"beforeWriteMetaError", "error:input/output error", 6},
		boundaryLife{"failedArtifactSync", "error:input/output error", 2})
}

func first(lines []string, n int) []string { return lines[:min(n, len(lines))] }

// add adds the counts of another result.
func (r *Result) add(other *Result) {
	r.Jobs += other.Jobs
	r.Candidates += other.Candidates
	r.Builds += other.Builds
	r.Measurements += other.Measurements
	r.Leases += other.Leases
	r.Trials += other.Trials
	r.Executions += other.Executions
	r.DeadLetters += other.DeadLetters
	r.Cancelled += other.Cancelled
	r.Failed += other.Failed
	r.Undecided += other.Undecided
	r.Requests += other.Requests
	for kind, times := range other.Counts {
		r.Counts[kind] += times
	}
}
