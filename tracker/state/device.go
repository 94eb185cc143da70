package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// keptChanges bounds the history of a device's state.
const keptChanges = 20

// device holds the administrative and calibration state of a runner's device. It outlives the runner's sessions.
type device struct {
	name string
	// cordon is nil unless the device is cordoned.
	cordon  *tilthv1.Cordon
	history []*tilthv1.DeviceChange
	// quarantine is nil unless calibration has failed.
	quarantine *tilthv1.Quarantine
	// warning is set while the device measures poorly but still gets work.
	warning *tilthv1.DeviceWarning
	// calibration is nil until the first calibration.
	calibration *tilthv1.DeviceCalibration
	// calibrateAt is when to calibrate next. It is not stored: a restarted tracker calibrates again.
	calibrateAt time.Time
	// changed is closed and replaced when the state changes.
	changed chan struct{}
}

func newDevice(name string, row *storev1.DeviceRow) *device {
	d := &device{
		name: name, cordon: row.GetCordon(), history: row.GetHistory(), quarantine: row.GetQuarantine(), warning: row.GetWarning(),
		calibration: row.GetCalibration(),
		changed:     make(chan struct{}),
	}
	if d.quarantine != nil {
		d.calibrateAt = d.quarantine.GetUntil().AsTime()
	}
	return d
}

func (d *device) row() *storev1.DeviceRow {
	return &storev1.DeviceRow{Cordon: d.cordon, History: d.history, Quarantine: d.quarantine, Warning: d.warning, Calibration: d.calibration}
}

func (d *device) state() tilthv1.DeviceState {
	switch {
	case d.cordon.GetDraining():
		return tilthv1.DeviceState_DEVICE_STATE_DRAINING
	case d.cordon != nil:
		return tilthv1.DeviceState_DEVICE_STATE_CORDONED
	case d.quarantine != nil:
		return tilthv1.DeviceState_DEVICE_STATE_QUARANTINED
	}
	return tilthv1.DeviceState_DEVICE_STATE_READY
}

// ready reports whether the device may be given work. A nil device, of an agent that is not a runner, is always ready.
func (d *device) ready() bool {
	return d == nil || d.state() == tilthv1.DeviceState_DEVICE_STATE_READY
}

// due returns when the state changes by itself, or zero.
func (d *device) due() time.Time {
	if until := d.cordon.GetUntil(); until != nil {
		return until.AsTime()
	}
	return time.Time{}
}

// device returns the device of a runner, creating it if necessary.
func (m *Machine) device(name string) *device {
	d := m.devices[name]
	if d == nil {
		d = newDevice(name, nil)
		m.devices[name] = d
	}
	return d
}

// deviceOf returns the device of a known runner.
func (m *Machine) deviceOf(name string) (*device, error) {
	if a := m.agents[name]; a == nil || a.device == nil {
		return nil, refuseUnknown("device", name)
	}
	return m.devices[name], nil
}

// deviceWork describes leased work for clients.
func deviceWork(w work) *tilthv1.DeviceWork {
	if b, is := w.(*batch); is {
		return &tilthv1.DeviceWork{JobId: b.job.id, JobName: b.job.spec.GetName(), Task: b.spec().GetName()}
	}
	j, _ := w.(*job)
	return &tilthv1.DeviceWork{JobId: j.id, JobName: j.spec.GetName()}
}

// describe returns the device as clients see it.
func (m *Machine) describe(d *device) *tilthv1.Device {
	a := m.agents[d.name]
	out := &tilthv1.Device{
		Agent: a.view(), State: d.state(), Leases: uint32(len(a.leases)), History: slices.Clone(d.history), Cordon: proto.CloneOf(d.cordon),
		Quarantine: proto.CloneOf(d.quarantine), Warning: proto.CloneOf(d.warning), Calibration: proto.CloneOf(d.calibration),
	}
	for _, l := range a.inOrder() {
		out.Work = append(out.Work, deviceWork(l.work))
	}
	if c := out.GetCalibration(); c != nil {
		c.Session = ""
		if c.GetReference() != nil && len(c.GetRecent()) > 0 {
			c.Drift = policy.DriftOf(c.GetRecent()[len(c.GetRecent())-1], c.GetReference())
		}
	}
	return out
}

// changeDevice changes the state of a device with decide. It stores the device, extends its history, wakes clients
// that watch it, and dispatches work to its agent.
func (c *Change) changeDevice(d *device, by, reason string, decide func()) {
	before := d.state()
	decide()
	c.recordChange(d, before, by, reason)
	c.write.PutDevice(d.name, d.row())
	if due := d.due(); due.IsZero() {
		delete(c.timed, d)
	} else {
		c.timed[d] = due
	}
	close(d.changed)
	d.changed = make(chan struct{})
	if a := c.agents[d.name]; a != nil && d.ready() {
		for _, class := range a.offers {
			c.dirty[class] = struct{}{} // its waiting requests may now be served
		}
	}
}

// recordChange adds the change to the device's history.
func (c *Change) recordChange(d *device, before tilthv1.DeviceState, by, reason string) {
	now := d.state()
	last := &tilthv1.DeviceChange{}
	if n := len(d.history); n > 0 {
		last = d.history[n-1]
	}
	if now == before && last.GetReason() == reason && last.GetBy() == by {
		return
	}
	c.log.Info("device changed", "device", d.name, "state", wire.DeviceState(now), "by", by, "reason", reason)
	d.history = append(d.history, &tilthv1.DeviceChange{At: c.now(), State: now, Reason: reason, By: by})
	if extra := len(d.history) - keptChanges; extra > 0 {
		d.history = slices.Delete(d.history, 0, extra)
	}
}

// drained completes the draining of a device whose last lease has ended.
func (c *Change) drained(d *device) {
	if a := c.agents[d.name]; d.cordon.GetDraining() && (a == nil || len(a.leases) == 0) {
		c.changeDevice(d, "", "drained: "+d.cordon.GetReason(), func() { d.cordon.Draining = false })
	}
}

// passTime ends cordons whose time is over.
func (c *Change) passTime(now time.Time) {
	var over []*device
	for d, due := range c.timed {
		if !now.Before(due) {
			over = append(over, d)
		}
	}
	slices.SortFunc(over, func(a, b *device) int { return cmp.Compare(a.name, b.name) })
	for _, d := range over {
		c.changeDevice(d, "", "its time is over", func() { d.cordon = nil })
	}
}

func (m *Machine) recoverDevices(rows Rows) error {
	return rows.Devices(func(name string, row *storev1.DeviceRow) {
		d := newDevice(name, row)
		m.devices[name] = d
		if due := d.due(); !due.IsZero() {
			m.timed[d] = due
		}
	})
}

// Device returns a device as clients see it. changed is closed when its state changes.
func (m *Machine) Device(name string) (out *tilthv1.Device, changed <-chan struct{}, err error) {
	d, err := m.deviceOf(name)
	if err != nil {
		return nil, nil, err
	}
	return m.describe(d), d.changed, nil
}

// Cordon stops work for a device: for duration or, if that is 0, until it is uncordoned.
func (c *Change) Cordon(name, by, reason string, duration time.Duration) (*tilthv1.Device, error) {
	return c.decide(name, func(d *device) {
		c.changeDevice(d, by, reason, func() {
			d.cordon = &tilthv1.Cordon{By: by, Reason: reason, Since: c.now()}
			if duration != 0 {
				d.cordon.Until = timestamppb.New(c.cfg.Now().Add(duration))
			}
		})
	})
}

// Uncordon makes a device available again.
func (c *Change) Uncordon(name, by, reason string) (*tilthv1.Device, error) {
	return c.decide(name, func(d *device) {
		if d.cordon != nil {
			c.changeDevice(d, by, reason, func() { d.cordon = nil })
		}
	})
}

// Drain cordons a device and lets it finish its leases. A repeated call with the same arguments changes nothing.
func (c *Change) Drain(name, by, reason string) (*tilthv1.Device, error) {
	return c.decide(name, func(d *device) {
		if o := d.cordon; o != nil && o.GetUntil() == nil && o.GetBy() == by && o.GetReason() == reason &&
			(o.GetDraining() || len(c.agents[d.name].leases) == 0) {
			return
		}
		c.changeDevice(d, by, reason, func() {
			d.cordon = &tilthv1.Cordon{By: by, Reason: reason, Since: c.now(), Draining: len(c.agents[d.name].leases) > 0}
		})
	})
}

// decide runs step on a device and returns the device's new state.
func (c *Change) decide(name string, step func(d *device)) (*tilthv1.Device, error) {
	d, err := c.deviceOf(name)
	if err != nil {
		return nil, err
	}
	step(d)
	return c.describe(d), nil
}

// irreplaceable reports whether the device is the only available one for any of its classes. Quarantining it would
// stop all work of that class, and measurements with a warning are better than none.
func (c *Change) irreplaceable(d *device) bool {
	a := c.agents[d.name]
	if a == nil || a.gone {
		return false
	}
	return slices.ContainsFunc(a.offers, func(class class) bool { return !class.runs && !c.offeredBeside(a, class) })
}

// offeredBeside reports whether another available agent offers the class.
func (c *Change) offeredBeside(a *agent, class class) bool {
	for other := range c.queue(class).offering {
		if other != a && other.device.ready() {
			return true
		}
	}
	return false
}

// warn marks a device as measuring poorly while it keeps getting work. Only the first warning enters the history,
// since the figures change with each calibration.
func (c *Change) warn(d *device, reason string) {
	w := &tilthv1.DeviceWarning{Reason: reason, Since: c.now()}
	if d.warning != nil {
		d.warning, w.Since = w, d.warning.GetSince()
		c.write.PutDevice(d.name, d.row())
		return
	}
	c.addFact(Warned)
	c.changeDevice(d, "", reason+"; as the only device of its class it is given work all the same", func() {
		d.quarantine, d.warning = nil, w
	})
}

// toCalibrate reports whether the agent should calibrate now. The request is repeated until the agent reports a
// calibration.
func (m *Machine) toCalibrate(a *agent) bool {
	return a.device != nil && slices.Contains(a.spec.GetCapabilities(), wire.Calibrates) &&
		m.cfg.Drift.Due(m.cfg.Now(), a.device.calibrateAt, len(a.leases) > 0)
}

// rejoined reports whether an agent with a new session should calibrate at once. A quarantined device waits for its
// scheduled probe.
func (c *Change) rejoined(a *agent) bool {
	if a.device != nil && a.device.quarantine == nil {
		a.device.calibrateAt = c.cfg.Now()
	}
	return c.toCalibrate(a)
}

// Calibrate processes a calibration reported by the agent of a session.
func (c *Change) Calibrate(session string, report *tilthv1.CalibrationReport) error {
	a, err := c.live(session)
	if err != nil {
		return err
	}
	if a.device == nil {
		return refuseField("session", "is of %q, which is not a runner", a.spec.GetName())
	}
	c.calibrated(a.device, session, report)
	return nil
}

// Recalibrate discards a device's calibration reference, quarantine and warning.
func (c *Change) Recalibrate(name, by, reason string) (*tilthv1.Device, error) {
	return c.decide(name, func(d *device) {
		c.changeDevice(d, by, strings.TrimSuffix("recalibrated: "+reason, ": "), func() {
			d.quarantine, d.warning, d.calibration, d.calibrateAt = nil, nil, nil, c.cfg.Now()
		})
	})
}

func (c *Change) calibrated(d *device, session string, report *tilthv1.CalibrationReport) {
	d.calibration = cmp.Or(d.calibration, &tilthv1.DeviceCalibration{})
	if n := report.GetNumber(); n > 0 && d.calibration.GetSession() == session && n <= d.calibration.GetNumber() {
		return // a repeated report; the response was lost
	}
	now := c.cfg.Now()
	since := d.calibration.GetCalmAt()
	v := c.cfg.Drift.Judge(d.calibration, report.GetKernels(), policy.SummarizeCalibration(report, now), d.quarantine != nil)
	d.calibration.Session, d.calibration.Number = session, report.GetNumber()
	d.calibration.Surroundings = report.GetSurroundings()
	remember(d.calibration, now)
	d.calibrateAt = now.Add(v.Next)
	c.addFact(Calibrated)
	switch {
	case v.Quarantine != "" && c.irreplaceable(d):
		c.warn(d, v.Quarantine)
	case v.Quarantine != "":
		c.addFact(Quarantined)
		c.changeDevice(d, "", v.Quarantine, func() { d.quarantine, d.warning = c.quarantine(d, v), nil })
	case v.Release, d.warning != nil && d.calibration.GetDisturbed() == 0:
		c.changeDevice(d, "", "it measures as it should again", func() { d.quarantine, d.warning = nil, nil })
	default:
		c.write.PutDevice(d.name, d.row())
	}
	if v.Suspect != "" && since != nil {
		c.suspect(d, since.AsTime(), fmt.Sprintf("%s: %s between %s and %s", d.name, v.Suspect,
			since.AsTime().UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339)))
	}
}

// quarantine starts a quarantine or extends the current one.
func (c *Change) quarantine(d *device, v policy.DriftVerdict) *tilthv1.Quarantine {
	q := &tilthv1.Quarantine{Reason: v.Quarantine, Since: c.now(), Until: timestamppb.New(c.cfg.Now().Add(v.Probe))}
	if d.quarantine != nil {
		q.Since = d.quarantine.GetSince()
	}
	return q
}

// suspect marks as suspect the bests that a device measured after since; they stand until they are measured again.
// Tuners of running jobs do that at once. Records of ended jobs are marked, and the next job with the same workload
// settles them with its first trials.
func (c *Change) suspect(d *device, since time.Time, reason string) {
	c.write.SuspectBests(d.name, since, reason)
	for _, j := range c.jobsByID() {
		for i, p := range j.progress {
			best := p.GetBest()
			if best.GetDevice() != d.name || !best.GetAt().AsTime().After(since) {
				continue
			}
			candidate := proto.CloneOf(best.GetCandidate())
			candidate.Trace = p.GetBestTrace()
			c.store(j, &tilthv1.JobEvent{Event: &tilthv1.JobEvent_Suspected{Suspected: &tilthv1.MeasurementSuspected{
				TaskIndex: uint32(i), Device: d.name, Reason: reason, Candidate: candidate,
			}}})
			c.log.Warn("best measurement in doubt", "job", j.id, "task", i, "reason", reason)
		}
	}
}

// jobsByID returns the open jobs, oldest first.
func (m *Machine) jobsByID() []*job {
	return slices.SortedFunc(maps.Values(m.jobs), func(a, b *job) int { return cmp.Compare(a.id, b.id) })
}

// maxCourse bounds the calibrations in a device's history.
const maxCourse = 48

// remember appends the latest calibration to the device's history, once there is a reference to compare it with.
func remember(c *tilthv1.DeviceCalibration, now time.Time) {
	if c.GetReference() == nil || len(c.GetRecent()) == 0 {
		return
	}
	if c.GetCourse() == nil {
		c.Course = &tilthv1.CalibrationCourse{}
	}
	to := c.GetCourse()
	to.AtSeconds = last(append(to.AtSeconds, now.Unix()))
	to.Drift = last(append(to.Drift, float32(policy.DriftOf(c.GetRecent()[len(c.GetRecent())-1], c.GetReference()))))
	to.Celsius = last(append(to.Celsius, hottest(c.GetSurroundings())))
}

// last drops all but the last maxCourse elements, in place.
func last[T any](all []T) []T { return slices.Delete(all, 0, max(0, len(all)-maxCourse)) }

// hottest returns the highest temperature of all sensors in degrees Celsius, or 0 without sensors.
func hottest(s *tilthv1.Surroundings) (celsius float32) {
	for _, t := range s.GetTemperatures() {
		celsius = max(celsius, float32(t.GetCelsius()))
	}
	return celsius
}
