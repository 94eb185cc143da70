package state

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// day is a simulated farm: tuners and devices that work on jobs for as long as each needs.
type day struct {
	*testing.T
	m     *Machine
	now   time.Time
	held  map[string]*tilthv1.LeaseToken // by session
	needs map[string]time.Duration       // remaining work by job name
	// Results: the order in which jobs started, their waiting times, and the time that agents worked for each.
	started []string
	since   map[string]time.Time
	waits   map[string]time.Duration
	served  map[string]time.Duration
}

func newDay(t *testing.T, shares policy.Shares) *day {
	d := &day{
		T: t, now: time.Unix(1_000_000, 0), held: map[string]*tilthv1.LeaseToken{}, needs: map[string]time.Duration{},
		since: map[string]time.Time{}, waits: map[string]time.Duration{}, served: map[string]time.Duration{},
	}
	clock := func() time.Time { return d.now }
	d.m = New(Config{
		Logger: slog.New(slog.DiscardHandler), Now: clock, Clock: clock, Artifacts: files{map[string]int64{"package": 1}, map[string]int{}}, Generation: "life",
		Requested:         func(string, string) (string, error) { return "", records.ErrNotFound },
		HeartbeatInterval: 5 * time.Second, LeaseTimeout: 30 * time.Second, Grace: time.Minute, OutageWait: time.Minute, MaxAttempts: 4,
		Cooldown: policy.Cooldown{First: time.Second, Max: time.Minute}, SearchTurn: 2 * time.Minute, Shares: shares,
		Keep: policy.Retention{Jobs: 2}.WithDefaults(), Limits: Limits{}.WithDefaults(), Drift: policy.Drift{}.WithDefaults(),
	})
	return d
}

func (d *day) do(step func(*Change) error) {
	d.Helper()
	if _, err := d.m.Apply(step); err != nil {
		d.Fatal(err)
	}
	d.m.Effects()
}

func (d *day) join(spec *tilthv1.AgentSpec) {
	d.do(func(c *Change) error { _, err := c.Join(spec, spec.GetName(), ""); return err })
	d.held[spec.GetName()] = nil
}

func (d *day) tuners(n int) {
	for i := range n {
		d.join(&tilthv1.AgentSpec{Name: fmt.Sprint("tuner", i), Kind: tilthv1.AgentKind_AGENT_KIND_TUNER, Tuners: []string{"grid"}})
	}
	d.join(&tilthv1.AgentSpec{Name: "builder", Kind: tilthv1.AgentKind_AGENT_KIND_BUILDER, Toolchains: []string{"clang"}})
	d.devices(1)
}

func (d *day) devices(n int) {
	for i := range n {
		d.join(&tilthv1.AgentSpec{
			Name: fmt.Sprint("device", i), Kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, DeviceClasses: []*tilthv1.DeviceClass{{Name: "x86"}}, Capabilities: []string{"run"},
		})
	}
}

// submit submits a job that needs an agent for some time. Its name must be unique.
func (d *day) submit(owner, name string, priority uint32, needs time.Duration, run bool) {
	d.Helper()
	spec := &tilthv1.JobSpec{
		Name: name, Owner: owner, Tuner: "grid", Priority: priority, Tasks: conv(), Budget: &tilthv1.Budget{Trials: 64},
		Target: &tilthv1.TargetSpec{Fingerprint: "cpu", Toolchain: "clang", DeviceClass: "x86"},
	}
	if run {
		spec.Tasks, spec.Run = nil, &tilthv1.RunSpec{Packages: []*tilthv1.RunPackage{{Artifact: &tilthv1.ArtifactRef{Digest: "package"}}}}
	}
	d.do(func(c *Change) error {
		_, _, err := c.Submit(NewSubmission(name, spec, []*tilthv1.TaskProgress{{}}))
		return err
	})
	d.needs[name], d.since[name] = needs, d.now
}

// nameOf returns the job that a session works on, or "" once its lease has ended.
func (d *day) nameOf(session string) string {
	if j, is := d.m.lookUp(d.held[session]).(*job); is {
		return j.spec.GetName()
	}
	return ""
}

// pass lets time pass in steps. All agents work, and report the jobs that are done.
func (d *day) pass(during time.Duration) {
	d.Helper()
	const step = 10 * time.Second
	for ; during > 0; during -= step {
		sessions := slices.Sorted(maps.Keys(d.held))
		for _, session := range sessions {
			if d.nameOf(session) != "" {
				continue
			}
			e, err := d.m.Lease(session)
			if err != nil {
				d.Fatal(err)
			}
			d.m.Effects()
			if d.held[session] = nil; e == nil {
				continue
			}
			d.held[session] = e.Grant.Response.GetLease()
			name := d.nameOf(session)
			if _, began := d.waits[name]; !began {
				d.started = append(d.started, name)
				d.waits[name] = d.now.Sub(d.since[name])
			}
		}
		d.now = d.now.Add(step)
		for _, session := range sessions {
			var leases []*tilthv1.LeaseToken
			if name := d.nameOf(session); name != "" {
				leases = append(leases, d.held[session])
				d.served[name] += step
				if d.needs[name] -= step; d.needs[name] <= 0 {
					d.finish(session)
					leases = nil
				}
			}
			if _, _, err := d.m.Heartbeat(&tilthv1.HeartbeatRequest{Session: session, Leases: leases}); err != nil {
				d.Fatal(err)
			}
		}
		d.do(func(c *Change) error { c.Expire(); c.EndTurns(); return nil })
	}
}

func (d *day) finish(session string) {
	lease := d.held[session]
	d.do(func(c *Change) error {
		if d.m.lookUp(lease).(*job).runs() {
			_, err := c.ReportRun(&tilthv1.ReportRunRequest{Lease: lease, Result: &tilthv1.RunResult{Packages: []*tilthv1.PackageResult{{}}}})
			return err
		}
		c.Finish(lease, tilthv1.JobState_JOB_STATE_DONE, "")
		return nil
	})
}

// TestUrgentJobStartsFirst is a regression test: 24 jobs of priority 10 started before one of priority 100.
func TestUrgentJobStartsFirst(t *testing.T) {
	for _, run := range []bool{false, true} {
		d := newDay(t, policy.Shares{})
		d.tuners(1)
		d.submit("ana", "first", 10, 10*time.Minute, run)
		d.pass(30 * time.Second)
		for i := range 24 {
			d.submit("ana", fmt.Sprint("patient", i), 10, time.Minute, run)
		}
		d.submit("ana", "urgent", 100, time.Minute, run)
		d.pass(12 * time.Minute)
		if got := d.started[1]; got != "urgent" {
			t.Errorf("run %v: %s started before the urgent job", run, got)
		}
	}
}

// TestDayIsSharedByWeight simulates a day on which searches of different owners and priorities compete for tuners.
func TestDayIsSharedByWeight(t *testing.T) {
	d := newDay(t, policy.Shares{Owners: map[string]policy.Share{"bob": {Weight: 3}}})
	d.tuners(2)
	for name, priority := range map[string]uint32{"high": 60, "middle": 30, "low": 10} {
		d.submit("ana", name, priority, 48*time.Hour, false)
	}
	for i := range 6 {
		d.submit("bob", fmt.Sprint("bob", i), 10, 48*time.Hour, false)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 24 { // short jobs come and go
		d.submit("eva", fmt.Sprint("eva", i), uint32(1+random.IntN(100)), time.Duration(1+random.IntN(30))*time.Minute, false)
		d.pass(time.Hour)
	}
	var ana, bob time.Duration
	for name, served := range d.served {
		switch name {
		case "high", "middle", "low":
			ana += served
		default:
			if name[:3] == "bob" {
				bob += served
			}
		}
	}
	if ratio := bob.Seconds() / ana.Seconds(); ratio < 2.9 || ratio > 3.1 {
		t.Errorf("bob got %v and ana %v, want three times as much", bob, ana)
	}
	for name, share := range map[string]float64{"high": 0.6, "middle": 0.3, "low": 0.1} {
		if got := d.served[name].Seconds() / ana.Seconds(); got < share-0.02 || got > share+0.02 {
			t.Errorf("%s got %.3f of ana's time, want %.1f", name, got, share)
		}
	}
	if n := len(d.started); n != 3+6+24 {
		t.Errorf("%d of 33 jobs started", n)
	}
}

// TestDayOfRunsServesUrgentOnesFirstAndStarvesNone simulates a day of package runs on devices that are always busy.
func TestDayOfRunsServesUrgentOnesFirstAndStarvesNone(t *testing.T) {
	d := newDay(t, policy.Shares{})
	d.devices(2)
	random := rand.New(rand.NewPCG(3, 4))
	byPriority := map[uint32][]string{}
	for i := range 24 * 12 {
		for k := range 1 + i%2 + i/144%2 { // more than the devices can do in the second half
			priority := []uint32{1, 10, 100}[random.IntN(3)]
			name := fmt.Sprintf("run %d.%d", i, k)
			byPriority[priority] = append(byPriority[priority], name)
			d.submit("ana", name, priority, time.Duration(4+random.IntN(6))*time.Minute, true)
		}
		d.pass(5 * time.Minute)
	}
	mean := func(priority uint32) (total time.Duration) {
		for _, name := range byPriority[priority] {
			wait, began := d.waits[name]
			if !began {
				wait = d.now.Sub(d.since[name])
			}
			total += wait
		}
		return total / time.Duration(len(byPriority[priority]))
	}
	if low, middle, high := mean(1), mean(10), mean(100); high >= middle/2 || middle >= low/2 {
		t.Errorf("runs of priority 100 waited %v, of 10 %v, of 1 %v", high, middle, low)
	}
	late := 0
	for _, name := range d.started[len(d.started)/2:] {
		if slices.Contains(byPriority[1], name) {
			late++
		}
	}
	if late == 0 {
		t.Error("no run of priority 1 started in the second half of the day")
	}
}

// TestAttachedJobEndsSecondsAfterItsClient also covers clients that return in time or never connect, and a tracker
// that was stopped for seconds.
func TestAttachedJobEndsSecondsAfterItsClient(t *testing.T) {
	d := newDay(t, policy.Shares{})
	d.devices(1)
	attached := func(name string) string {
		d.submit("ana", name, 0, 10*time.Minute, true)
		for id, j := range d.m.jobs {
			if j.spec.GetName() == name {
				j.spec.Run.Attached = true
				return id
			}
		}
		return ""
	}
	tick := func(after time.Duration) {
		d.now = d.now.Add(after)
		d.do(func(c *Change) error { c.Expire(); return nil })
	}
	lost, never, kept := attached("lost"), attached("never"), attached("kept")
	d.m.Attach(lost)
	d.m.Attach(kept)
	d.pass(10 * time.Second)
	for range 3 { // the tracker is late, and so may be what it received
		d.m.Attach(kept)
		tick(5 * time.Second)
	}
	d.m.Attach(lost)
	d.m.Attach(kept)
	tick(time.Second)
	tick(time.Second)
	tick(time.Second)
	if d.m.jobs[lost] == nil || d.nameOf("device0") != "lost" {
		t.Error("the job ended before its client could return")
	}
	d.m.Attach(kept)
	tick(time.Second)
	if d.m.jobs[lost] != nil {
		t.Error("the job outlives its client by more than 4 s")
	}
	d.m.Attach(kept)
	d.pass(10 * time.Second) // a late tick, which also spares the one that never connected
	for range 5 {
		d.m.Attach(kept)
		tick(time.Second)
	}
	d.pass(10 * time.Second)
	if d.m.jobs[kept] == nil || d.nameOf("device0") != "kept" {
		t.Errorf("the device has %q, not the job whose client reconnected", d.nameOf("device0"))
	}
	if d.m.jobs[never] != nil {
		t.Error("a job whose client never connected goes on")
	}
}
