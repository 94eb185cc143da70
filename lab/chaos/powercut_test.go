package chaos

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/chaos/powercut"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

var (
	cuts  = flag.Int("cuts", 15, "how many power cuts of each farm that is recorded")
	lives = flag.Int("lives", 1, "after how many of them the farm goes on to its end")
	farms = flag.Int("farms", 1, "how many farms are recorded; the seed is that of the first, the others follow")
)

// TestPowerCutLosesNothingThatWasAcknowledged records the writes of a farm and cuts its power at random instants:
// the disk keeps everything synced by then, and some of the rest. A tracker that opens the data must have everything
// that agents and client saw acknowledged. After some cuts the farm continues to its end, and must keep its promises.
func TestPowerCutLosesNothingThatWasAcknowledged(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: records what a farm writes, and restarts it after power cuts")
	}
	t.Parallel() // mostly waits
	total := &Result{Counts: map[string]int{}}
	for n := range uint64(*farms) {
		recordFarm(t, *seed+n).cutOften(total)
	}
	t.Logf("%d farms, %d power cuts each: of those that went on, %d jobs, %d candidates, %d builds and %d measurements acknowledged in all, %d trials recorded, measured %d times",
		*farms, *cuts, total.Jobs, total.Candidates, total.Builds, total.Measurements, total.Trials, total.Executions)
}

// recordedFarm is a finished farm with a trace of its writes.
type recordedFarm struct {
	*testing.T
	seed  uint64
	trace *powercut.Trace
}

func recordFarm(t *testing.T, seed uint64) *recordedFarm {
	t.Helper()
	dir, err := os.MkdirTemp("", "powercut") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(buildProgram(t), processArgument, "-kind", "farm", "-dir", dir, "-seed", strconv.FormatUint(seed, 10), "-points", strings.Join(boundaries, ","))
	cmd.Stderr = os.Stderr
	trace, err := powercut.Run(cmd, dir)
	if err != nil {
		t.Fatal(err)
	}
	return &recordedFarm{t, seed, trace}
}

// cutOften cuts the power at increasing instants.
func (f *recordedFarm) cutOften(total *Result) {
	f.Helper()
	rng := rand.New(rand.NewPCG(f.seed, 2))
	disk := f.trace.NewDisk()
	for n := range *cuts {
		at := (f.trace.Len()*n + rng.IntN(f.trace.Len())) / *cuts
		if err := disk.Advance(at); err != nil {
			f.Fatal(err)
		}
		loss := disk.Draw(rng, dataName)
		if err := disk.Try(loss, dataName, func(data string, _ int) error { return f.judge(disk, data) }); err != nil {
			f.Fatalf("seed %d, cut %d: %v", f.seed, n, err)
		}
		if (n+1)*(*lives)/(*cuts) > n*(*lives)/(*cuts) {
			f.goOn(disk, loss, total)
		}
	}
}

// judge opens the remaining data with a tracker and returns the broken promises.
func (f *recordedFarm) judge(disk *powercut.Disk, data string) error {
	journals := data + "." + journalsName
	if err := disk.Write(journals, journalsName, powercut.Loss{}); err != nil {
		return err
	}
	if err := openTracker(data); err != nil {
		return err
	}
	v, err := checkCut(data, journals)
	if err != nil {
		return err
	}
	if broken := append(v.Violations, falseArtifacts(filepath.Join(data, artifactsName))...); len(broken) > 0 {
		return errors.New(strings.Join(first(broken, 10), "\n"))
	}
	return nil
}

// openTracker starts a tracker on the data and stops it once it has recovered.
func openTracker(data string) error {
	db, err := bolt.Open(filepath.Join(data, recordsName), bolt.Options{})
	if err != nil {
		return err
	}
	t, err := tracker.New(tracker.Config{Store: db, ArtifactsDir: filepath.Join(data, artifactsName)})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	t.Close()
	return db.Close()
}

// falseArtifacts returns the artifacts whose content does not match their digests.
func falseArtifacts(dir string) (broken []string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !records.ValidDigest(d.Name()) {
			return err
		}
		content, err := os.ReadFile(path)
		if records.Digest(content) != d.Name() {
			broken = append(broken, fmt.Sprintf("artifact %s has other bytes, %d of them", d.Name(), len(content)))
		}
		return err
	})
	if err != nil {
		broken = append(broken, err.Error())
	}
	return broken
}

// goOn restarts the farm on the data that a loss left.
func (f *recordedFarm) goOn(disk *powercut.Disk, loss powercut.Loss, total *Result) {
	f.Helper()
	dir, err := os.MkdirTemp("", "powercut")
	if err != nil {
		f.Fatal(err)
	}
	defer os.RemoveAll(dir)
	err = errors.Join(disk.Write(filepath.Join(dir, dataName), dataName, loss), disk.Write(filepath.Join(dir, journalsName), journalsName, powercut.Loss{}))
	if err != nil {
		f.Fatal(err)
	}
	again, err := newFarm(dir, buildProgram(f.T), func(how string) { f.Error(how) })
	if err != nil {
		f.Fatal(err)
	}
	defer again.close()
	again.lives = 1000 // beyond the recorded lives
	ctx, cancel := withPatience(f.Context(), patience)
	defer cancel()
	if err := again.start(arming{}); err != nil {
		f.Fatal(err)
	}
	watched, err := again.follow(ctx, again.life(), make([]intervention, jobsPerRound), jobSpec)
	if err := errors.Join(err, again.stop()); err != nil {
		f.Fatal(err)
	}
	v, err := check(farmData{data: again.data()}, again.journals(), watched)
	if err != nil {
		f.Fatal(err)
	}
	total.add(&Result{Verdict: v})
	for _, broken := range first(v.Violations, 10) {
		f.Errorf("seed %d, going on: %s", f.seed, broken)
	}
}
