package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fault is a fault of a round.
type fault = faultOf[*round]

// faultOf is a temporary fault of a farm.
type faultOf[R any] struct {
	// Kind is the name under which faults are counted.
	Kind string
	// On is the affected process or host.
	On string
	// At is the start relative to the round's start, For the duration.
	At, For time.Duration
	// What is the size of the fault, for kinds that have one.
	What string

	begin, end func(R)
}

func (f *faultOf[R]) String() string {
	return strings.TrimSpace(fmt.Sprintf("%v %s %s for %v %s", f.At.Round(time.Millisecond), f.Kind, f.On, f.For.Round(time.Millisecond), f.What))
}

// faultKinds draw the faults of each kind. The tracker and its network are affected as often as all agents together.
var faultKinds = []func(*draw) *fault{
	drawKill, drawKill, drawTerminate, drawStop, drawCut, drawCutWithin, drawHalfOpen, drawLostAnswers, drawDelay, drawPartition,
	drawKillOnAnswer, drawFailpoint, drawFailpoint, drawFailpoint, drawDiskError, drawFailedSync, drawFailedSync, drawBitRot, drawBitRot,
	drawFullDisk, drawClockJump, drawSuspension,
}

// draw is the round's random source.
type draw struct {
	*rand.Rand
	points []string // names of failpoints
	within time.Duration
}

// Faults and interventions begin within these times after the round's start. Real agents take longer to start, and
// meet more faults.
const (
	faultsWithin     = 3 * time.Second
	realFaultsWithin = 9 * time.Second
)

func (d *draw) source() *draw { return d }

func (d *draw) span(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64(high-low)))
}

// agent draws the index of an agent.
func (d *draw) agent() int { return d.IntN(len(kinds)) }

// anyProcess draws the tracker (-1) as often as all agents together.
func (d *draw) anyProcess() int {
	if d.IntN(2) == 0 {
		return -1
	}
	return d.agent()
}

func nameOf(process int) string {
	if process < 0 {
		return "tracker"
	}
	return kinds[process].name
}

// drawFaults draws a round's faults, 4 to 11 per three seconds.
func drawFaults[D interface{ source() *draw }, R any](from D, kinds []func(D) *faultOf[R]) (out []*faultOf[R]) {
	d := from.source()
	for range (4 + d.IntN(8)) * int(d.within/faultsWithin) {
		f := kinds[d.IntN(len(kinds))](from)
		f.At = d.span(0, d.within)
		if f.For == 0 {
			f.For = d.span(50*time.Millisecond, 1500*time.Millisecond)
		}
		out = append(out, f)
	}
	return out
}

func drawKill(d *draw) *fault {
	n := d.anyProcess()
	return &fault{
		Kind: "kill -9", On: nameOf(n), For: d.span(time.Millisecond, 500*time.Millisecond),
		begin: func(r *round) { r.process(n).kill(true) },
		end:   func(r *round) { r.revive(n) },
	}
}

// drawTerminate draws a graceful stop and restart of a process.
func drawTerminate(d *draw) *fault {
	n := d.anyProcess()
	return &fault{
		Kind: "SIGTERM", On: nameOf(n), For: d.span(time.Millisecond, 500*time.Millisecond),
		begin: func(r *round) {
			if err := r.process(n).terminate(); err != nil {
				r.died(err.Error())
			}
		},
		end: func(r *round) { r.revive(n) },
	}
}

func drawStop(d *draw) *fault {
	n := d.anyProcess()
	return &fault{
		Kind: "SIGSTOP", On: nameOf(n),
		begin: func(r *round) { r.process(n).signal(syscall.SIGSTOP) },
		end:   func(r *round) { r.process(n).signal(syscall.SIGCONT) },
	}
}

func drawCut(d *draw) *fault {
	n := d.agent()
	return &fault{
		Kind: "connections reset", On: nameOf(n), For: time.Millisecond,
		begin: func(r *round) { r.farm.proxies[n].cut() }, end: func(*round) {},
	}
}

func drawCutWithin(d *draw) *fault {
	n, bytes, way := d.agent(), 1+d.IntN(3000), direction(d.IntN(2))
	return &fault{
		Kind: "connection cut within a message", On: nameOf(n), What: fmt.Sprintf("after %d bytes, way %d", bytes, way),
		begin: func(r *round) { r.farm.proxies[n].cutAfter(bytes, way) },
		end:   func(r *round) { r.farm.proxies[n].cutAfter(0, way) },
	}
}

func drawHalfOpen(d *draw) *fault {
	n := d.agent()
	return &fault{
		Kind: "half-open connections", On: nameOf(n),
		begin: func(r *round) { r.farm.proxies[n].hush(toTracker, toAgent) },
		end:   func(r *round) { r.farm.proxies[n].heal() },
	}
}

// drawLostAnswers draws calls that take effect but lose their answers.
func drawLostAnswers(d *draw) *fault {
	n := d.agent()
	return &fault{
		Kind: "answers lost", On: nameOf(n),
		begin: func(r *round) { r.farm.proxies[n].hush(toAgent) },
		end:   func(r *round) { r.farm.proxies[n].heal() },
	}
}

func drawDelay(d *draw) *fault {
	n, delay := d.agent(), d.span(5*time.Millisecond, 300*time.Millisecond)
	return &fault{
		Kind: "delayed", On: nameOf(n), What: "by " + delay.Round(time.Millisecond).String(),
		begin: func(r *round) { r.farm.proxies[n].slow(delay) },
		end:   func(r *round) { r.farm.proxies[n].slow(0) },
	}
}

// drawPartition draws a partition of the tracker from all agents.
func drawPartition(d *draw) *fault {
	return &fault{
		Kind: "partition", On: "tracker",
		begin: func(r *round) {
			for _, p := range r.farm.proxies {
				p.hush(toTracker, toAgent)
			}
		},
		end: func(r *round) {
			for _, p := range r.farm.proxies {
				p.heal()
			}
		},
	}
}

// drawKillOnAnswer draws a kill of the tracker right after an answer has left it.
func drawKillOnAnswer(d *draw) *fault {
	n, chunks := d.agent(), 1+d.IntN(20)
	return &fault{
		Kind: "kill -9 after an answer", On: "tracker", For: 200 * time.Millisecond, What: fmt.Sprintf("the %d. to %s", chunks, nameOf(n)),
		begin: func(r *round) {
			r.farm.proxies[n].afterAnswers(chunks, func() {
				r.happened("kill -9 after an answer, of those drawn")
				go r.farm.tracker.kill(false)
			})
		},
		end: func(*round) {},
	}
}

// drawFailpoint draws a kill of the tracker at a commit boundary in its next life, which starts at once.
func drawFailpoint(d *draw) *fault {
	point, times := d.points[d.IntN(len(d.points))], 1+int(d.ExpFloat64()*12)
	return &fault{
		Kind: "failpoint", On: "tracker", For: time.Millisecond, What: fmt.Sprintf("%s, at the %d.", point, times),
		begin: func(r *round) { r.arm(arming{points: fmt.Sprintf("%s=%d:kill", point, times)}) }, end: func(*round) {},
	}
}

// drawDiskError draws a failed write to the records file, or a failed sync of an artifact that loses its data.
func drawDiskError(d *draw) *fault {
	points := []string{"lackOfDiskSpace", "beforeWriteMetaError", "resizeFileError", "failedArtifactSync"}
	point, times := points[d.IntN(len(points))], 1+int(d.ExpFloat64()*10)
	return &fault{
		Kind: "write fails", On: "tracker", For: time.Millisecond, What: fmt.Sprintf("%s, at the %d.", point, times),
		begin: func(r *round) {
			r.arm(arming{points: fmt.Sprintf("%s=%d:error:no space left on device", point, times)})
		}, end: func(*round) {},
	}
}

// drawFailedSync draws failed syncs of any files in the tracker's next life.
func drawFailedSync(d *draw) *fault {
	n := 1 + int(d.ExpFloat64()*10)
	return &fault{
		Kind: "fsync fails", On: "tracker", For: time.Millisecond, What: fmt.Sprintf("the %d. of a thread", n),
		begin: func(r *round) { r.arm(arming{failingSync: n}) }, end: func(*round) {},
	}
}

// drawBitRot draws a flipped bit in a recent artifact. As with a real disk, the file times do not change.
func drawBitRot(d *draw) *fault {
	back, bit := d.IntN(8), d.Int64()
	return &fault{
		Kind: "bit rot", On: "artifact", For: time.Millisecond,
		begin: func(r *round) { r.rotArtifact(back, bit) }, end: func(*round) {},
	}
}

// drawFullDisk draws a full disk of the tracker's data.
func drawFullDisk(d *draw) *fault {
	return &fault{
		Kind: "disk full", On: "tracker", For: d.span(200*time.Millisecond, 1200*time.Millisecond),
		begin: func(r *round) { r.fillDisk() },
		end:   func(r *round) { os.Remove(filepath.Join(r.farm.data(), ballast)) },
	}
}

// drawClockJump draws a temporary jump of the wall clock.
func drawClockJump(d *draw) *fault {
	jumps := []time.Duration{-time.Hour, -3 * time.Second, 3 * time.Second, time.Hour}
	jump := jumps[d.IntN(len(jumps))]
	return &fault{
		Kind: "wall clock set", On: "tracker", What: "by " + jump.String(),
		begin: func(r *round) { r.clocks.shift(jump, 0) },
		end:   func(r *round) { r.clocks.shift(-jump, 0) },
	}
}

// drawSuspension draws the suspension of a tracker's machine: all clocks advance while no process runs.
func drawSuspension(d *draw) *fault {
	jumps := []time.Duration{500 * time.Millisecond, 3 * time.Second, time.Hour}
	jump := jumps[d.IntN(len(jumps))]
	return &fault{
		Kind: "clocks jump forward", On: "tracker", For: time.Millisecond, What: "by " + jump.String(),
		begin: func(r *round) { r.clocks.shift(jump, jump) }, end: func(*round) {},
	}
}

// ballast is the file that fills the disk.
const ballast = "ballast"

// fillDisk fills the disk of the tracker's data.
func (r *round) fillDisk() {
	if !r.ownDisk {
		return
	}
	fill(filepath.Join(r.farm.data(), ballast))
}

// fill writes to a file until the disk is full.
func fill(path string) {
	f, err := os.Create(path)
	if err != nil {
		return // already full
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4 << 10} {
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
}

// mountDisk mounts a small disk for the tracker's data, if permitted.
func (r *round) mountDisk() {
	r.ownDisk = unix.Mount("tmpfs", r.farm.data(), "tmpfs", 0, "size=96m") == nil
}

// clocks controls a tracker's clocks through a file: the offsets of both from the machine's, and the speed of the
// second.
type clocks struct {
	tracker *process
	path    string

	mu             sync.Mutex
	onWall, evenly time.Duration
	pace           float64
}

// shift adds to the offsets of the clocks.
func (c *clocks) shift(onWall, evenly time.Duration) {
	c.write(onWall, evenly)
	c.tracker.signal(unix.SIGUSR1) // without the lock: see TestClocksShiftWhileATrackerStarts
}

func (c *clocks) write(onWall, evenly time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onWall += onWall
	c.evenly += evenly
	// This fails on a full disk.
	_ = os.WriteFile(c.path, fmt.Appendf(nil, "%v %v %v", c.onWall, c.evenly, c.pace), 0o644)
}

// draw draws the speed of the tracker's deadline clock. It returns a description, unless the speed is the agents'.
func (c *clocks) draw(d *draw) string {
	paces := []float64{1, 1, 0.6, 1.7}
	if c.pace = paces[d.IntN(len(paces))]; c.pace == 1 {
		return ""
	}
	c.write(0, 0)
	return fmt.Sprintf("the time of %s passes %v times as fast as the agents'", c.tracker.name, c.pace)
}

// setClocks draws the clock errors of the round: the offsets of the agents' wall clocks and the speed of the
// tracker's deadlines. It returns descriptions.
func (r *round) setClocks() (descriptions []string) {
	for i, skew := range r.draw.skews() {
		if skew != 0 && r.farm.skews != nil {
			r.farm.skews[i] = skew
			descriptions = append(descriptions, fmt.Sprintf("the calendar of %s is wrong by %v", kinds[i].name, skew))
			r.happened("agent's calendar wrong")
		}
	}
	if pace := r.clocks.draw(r.draw); pace != "" {
		descriptions = append(descriptions, pace)
		r.happened("tracker's time at another pace")
	}
	return descriptions
}

// skews draws the offset of each agent's wall clock.
func (d *draw) skews() (out []time.Duration) {
	all := []time.Duration{0, 0, 0, -maxSkew, -90 * time.Second, 90 * time.Second, maxSkew}
	for range kinds {
		out = append(out, all[d.IntN(len(all))])
	}
	return out
}

// maxSkew is the maximum offset of an agent's wall clock. The campaign shifts the tracker's far less.
const maxSkew = 240 * time.Hour
