package tracker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy/drift"
)

// toCalibrate says whether an agent is asked for a calibration now. It is asked again until it has reported one. The
// caller holds the lock.
func (t *Tracker) toCalibrate(a *agent) bool {
	return a.device != nil && slices.Contains(a.spec.GetCapabilities(), wire.Calibrates) &&
		t.cfg.Drift.Due(t.cfg.Now(), a.device.calibrateAt, len(a.leases) > 0)
}

// rejoined says whether an agent of a new session is asked for a calibration at once: a device that is in quarantine
// waits for its time.
func (c *change) rejoined(a *agent) bool {
	if a.device != nil && a.device.quarantine == nil {
		a.device.calibrateAt = c.cfg.Now()
	}
	return c.toCalibrate(a)
}

// ReportCalibration implements tilthv1.DeviceServiceServer.
func (t *Tracker) ReportCalibration(ctx context.Context, req *tilthv1.ReportCalibrationRequest) (*tilthv1.ReportCalibrationResponse, error) {
	if err := checkCalibration(req.GetReport()); err != nil {
		return nil, err
	}
	err := t.update(ctx, func(c *change) error {
		a, err := c.live(req.GetSession())
		if err != nil {
			return err
		}
		if a.device == nil {
			return invalid("session", "is of %q, which is no runner", a.spec.GetName())
		}
		c.calibrated(a.device, req.GetSession(), req.GetReport())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &tilthv1.ReportCalibrationResponse{}, nil
}

func checkCalibration(r *tilthv1.CalibrationReport) error {
	if err := checkName("report.kernels", r.GetKernels()); err != nil {
		return err
	}
	if err := checkSamples("report.compute_seconds", r.GetComputeSeconds()); err != nil {
		return err
	}
	return checkSamples("report.memory_seconds", r.GetMemorySeconds())
}

func checkSamples(field string, samples []float64) error {
	if len(samples) == 0 {
		return invalid(field, "is empty")
	}
	for _, s := range samples {
		if !(s > 0) || math.IsInf(s, 1) {
			return invalid(field, "holds %v", s)
		}
	}
	return nil
}

// calibrated takes a calibration in and does what follows.
func (c *change) calibrated(d *device, session string, report *tilthv1.CalibrationReport) {
	if d.calibration == nil {
		d.calibration = &tilthv1.DeviceCalibration{}
	}
	if n := report.GetNumber(); n > 0 && d.calibration.GetSession() == session && n <= d.calibration.GetNumber() {
		return // the answer was lost
	}
	now := c.cfg.Now()
	since := d.calibration.GetCalmAt()
	v := c.cfg.Drift.Judge(d.calibration, report.GetKernels(), drift.Summarize(report, now), d.quarantine != nil)
	d.calibration.Session, d.calibration.Number = session, report.GetNumber()
	d.calibration.Surroundings = report.GetSurroundings()
	d.calibrateAt = now.Add(v.Next)
	c.metrics.calibrations.Inc()
	switch {
	case v.Quarantine != "" && c.irreplaceable(d):
		c.warn(d, v.Quarantine)
	case v.Quarantine != "":
		c.metrics.quarantines.Inc()
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

// quarantine begins a quarantine, or goes on with the one that there is.
func (c *change) quarantine(d *device, v drift.Verdict) *tilthv1.Quarantine {
	q := &tilthv1.Quarantine{Reason: v.Quarantine, Since: c.now(), Until: timestamppb.New(c.cfg.Now().Add(v.Probe))}
	if d.quarantine != nil {
		q.Since = d.quarantine.GetSince()
	}
	return q
}

// suspect has the bests measured again that a device measured after some time; they stand until then. Tuners of
// running jobs do so at once. Jobs that have ended have none: what they recorded is marked, so that the next job of
// the same workload settles it with its first trials.
func (c *change) suspect(d *device, since time.Time, reason string) {
	c.write.SuspectBests(d.name, since, reason)
	for _, j := range c.jobsByID() {
		for i, p := range j.progress {
			best := p.GetBest()
			if best.GetDevice() != d.name || !best.GetAt().AsTime().After(since) {
				continue
			}
			e := c.event(j)
			e.Event = &tilthv1.JobEvent_Suspected{Suspected: &tilthv1.MeasurementSuspected{
				TaskIndex: uint32(i), Device: d.name, Reason: reason,
				Candidate: &tilthv1.Candidate{
					Digest: best.GetCandidate().GetDigest(), Numerics: best.GetCandidate().GetNumerics(), Trace: p.GetBestTrace(),
				},
			}}
			c.store(j, e)
			c.log.Warn("best measurement in doubt", "job", j.id, "task", i, "reason", reason)
		}
	}
}

// jobsByID are the jobs that have not ended, oldest first.
func (t *Tracker) jobsByID() []*job {
	return slices.SortedFunc(maps.Values(t.jobs), func(a, b *job) int { return cmp.Compare(a.id, b.id) })
}

// RecalibrateDevice implements tilthv1.DeviceServiceServer.
func (t *Tracker) RecalibrateDevice(ctx context.Context, req *tilthv1.RecalibrateDeviceRequest) (*tilthv1.RecalibrateDeviceResponse, error) {
	by := who(ctx, req)
	out, err := t.decide(ctx, req.GetName(), func(c *change, d *device) {
		c.changeDevice(d, by, strings.TrimSuffix("recalibrated: "+req.GetReason(), ": "), func() {
			d.quarantine, d.warning, d.calibration, d.calibrateAt = nil, nil, nil, c.cfg.Now()
		})
	})
	return &tilthv1.RecalibrateDeviceResponse{Device: out}, err
}
