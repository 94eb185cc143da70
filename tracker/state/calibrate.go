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
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

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
			e := c.event(j)
			e.Event = &tilthv1.JobEvent_Suspected{Suspected: &tilthv1.MeasurementSuspected{
				TaskIndex: uint32(i), Device: d.name, Reason: reason,
				Candidate: candidate,
			}}
			c.store(j, e)
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
