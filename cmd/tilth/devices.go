package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// deviceRow is a device in a listing.
type deviceRow struct {
	Device string `json:"device"`
	// State is the state of the runner: idle, busy or gone.
	State string `json:"state"`
	// DeviceState is ready, or why the device gets no work.
	DeviceState string         `json:"device_state"`
	Cordon      *cordonRow     `json:"cordon,omitempty"`
	Quarantine  *quarantineRow `json:"quarantine,omitempty"`
	Warning     *warningRow    `json:"warning,omitempty"`
	Cooldown    *cooldownRow   `json:"rest,omitempty"`
	// Outage concerns the whole farm.
	Outage      *outageView       `json:"outage,omitempty"`
	Calibration *calibrationRow   `json:"calibration,omitempty"`
	Host        string            `json:"host"`
	Version     string            `json:"version"`
	Labels      map[string]string `json:"labels"`
	Classes     []classRow        `json:"classes"`
	Sandbox     []sandboxRow      `json:"sandbox"`
	Leases      int               `json:"leases"`
	Completed   uint64            `json:"completed"`
	Failed      uint64            `json:"failed"`
	Joined      string            `json:"joined_at"`
	Seen        string            `json:"seen_at"`
	History     []changeRow       `json:"history,omitempty"`
}

// cordonRow describes a cordon and its reason.
type cordonRow struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	Since  string `json:"since"`
	// Until is empty if the cordon does not expire.
	Until string `json:"until,omitempty"`
}

// quarantineRow describes why the tracker quarantined a device, and when it probes it again.
type quarantineRow struct {
	Reason string `json:"reason"`
	Since  string `json:"since"`
	Until  string `json:"until"`
}

// warningRow describes why the tracker would quarantine a device if it were not the only one of its class.
type warningRow struct {
	Reason string `json:"reason"`
	Since  string `json:"since"`
}

// cooldownRow describes until when and why the runner rests after failed leases, of all jobs or of one. It
// disappears after a successful lease.
type cooldownRow struct {
	Reason string `json:"reason"`
	Until  string `json:"until"`

	until time.Time
}

// calibrationRow describes the calibrations of a device.
type calibrationRow struct {
	// Reference is absent while it is being learned.
	Reference *figuresRow `json:"reference,omitempty"`
	Last      figuresRow  `json:"last"`
	// Drift is the relative slowdown of the last calibration against the reference; 0 without one.
	Drift float64 `json:"drift"`
	// Temperatures and the fields down to Throttling date from the last calibration.
	Temperatures []temperatureRow  `json:"temperatures,omitempty"`
	Clocks       []clockRow        `json:"clocks,omitempty"`
	Throttling   []throttlingRow   `json:"throttling,omitempty"`
	MemoryErrors []memoryErrorsRow `json:"memory_errors,omitempty"`
	// Power is read from the meter used for energy tuning.
	Power []powerRow `json:"power,omitempty"`
	// Impairments lists why the device currently reports little about itself.
	Impairments []string `json:"impairments,omitempty"`
}

type temperatureRow struct {
	Sensor  string  `json:"sensor"`
	Celsius float64 `json:"celsius"`
}

type clockRow struct {
	Domain   string  `json:"domain"`
	Hertz    float64 `json:"hertz"`
	Max      float64 `json:"most_hertz,omitempty"`
	Governor string  `json:"governor,omitempty"`
}

type memoryErrorsRow struct {
	Memory      string `json:"memory"`
	Corrected   uint64 `json:"corrected"`
	Uncorrected uint64 `json:"uncorrected"`
}

type throttlingRow struct {
	Source string `json:"source"`
	Events uint64 `json:"events"`
}

// powerRow is a meter reading. Watts is absent if it failed.
type powerRow struct {
	Meter string  `json:"meter"`
	Watts float64 `json:"watts,omitempty"`
}

// surround adds the surroundings of the machine.
func (r *calibrationRow) surround(s *tilthv1.Surroundings) {
	for _, t := range s.GetTemperatures() {
		r.Temperatures = append(r.Temperatures, temperatureRow{t.GetSensor(), t.GetCelsius()})
	}
	for _, c := range s.GetClocks() {
		r.Clocks = append(r.Clocks, clockRow{c.GetDomain(), c.GetHertz(), c.GetMostHertz(), c.GetGovernor()})
	}
	for _, t := range s.GetThrottling() {
		r.Throttling = append(r.Throttling, throttlingRow{t.GetSource(), t.GetEvents()})
	}
	for _, e := range s.GetMemoryErrors() {
		r.MemoryErrors = append(r.MemoryErrors, memoryErrorsRow{e.GetMemory(), e.GetCorrected(), e.GetUncorrected()})
	}
	for _, p := range s.GetPower() {
		r.Power = append(r.Power, powerRow{p.GetMeter(), p.GetWatts()})
	}
	r.Impairments = s.GetImpairments()
}

// figuresRow summarises one or more calibrations.
type figuresRow struct {
	ComputeSeconds float64 `json:"compute_s"`
	MemorySeconds  float64 `json:"memory_s"`
	Noise          float64 `json:"noise"`
	At             string  `json:"at"`
}

func newFiguresRow(f *tilthv1.CalibrationFigures) figuresRow {
	return figuresRow{ComputeSeconds: f.GetComputeSeconds(), MemorySeconds: f.GetMemorySeconds(), Noise: f.GetNoise(), At: instant(f.GetAt())}
}

func newCalibrationRow(c *tilthv1.DeviceCalibration) *calibrationRow {
	n := len(c.GetRecent())
	if n == 0 {
		return nil
	}
	row := &calibrationRow{Last: newFiguresRow(c.GetRecent()[n-1]), Drift: c.GetDrift()}
	if c.GetReference() != nil {
		row.Reference = new(newFiguresRow(c.GetReference()))
	}
	row.surround(c.GetSurroundings())
	return row
}

// changeRow is a change of a device's state. By is empty if the tracker made it.
type changeRow struct {
	At     string `json:"at"`
	State  string `json:"state"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// sandboxRow is a layer of the sandbox around candidates.
type sandboxRow struct {
	Layer      string `json:"layer"`
	How        string `json:"how,omitempty"`
	Missing    string `json:"missing,omitempty"`
	Substitute string `json:"substitute,omitempty"`
}

// classRow is a device class.
type classRow struct {
	Class  string         `json:"class"`
	Target *target.Target `json:"target,omitempty"`
}

func newDeviceRow(d *tilthv1.Device) deviceRow {
	agent := d.GetAgent()
	spec := agent.GetSpec()
	row := deviceRow{
		Device: spec.GetName(), State: wire.AgentState(agent.GetState()), DeviceState: wire.DeviceState(d.GetState()),
		Host: spec.GetHost(), Version: spec.GetVersion(), Labels: spec.GetLabels(),
		Leases: int(d.GetLeases()), Completed: agent.GetCompleted(), Failed: agent.GetFailed(),
		Joined: instant(agent.GetJoinedAt()), Seen: instant(agent.GetSeenAt()),
	}
	for _, l := range spec.GetSandbox() {
		row.Sandbox = append(row.Sandbox, sandboxRow{l.GetName(), l.GetHow(), l.GetMissing(), l.GetSubstitute()})
	}
	for _, class := range spec.GetDeviceClasses() {
		c := classRow{Class: class.GetName()}
		if t, err := target.Decode(class.GetDescriptor_()); err == nil {
			c.Target = t
		}
		row.Classes = append(row.Classes, c)
	}
	if c := d.GetCordon(); c != nil {
		row.Cordon = &cordonRow{By: c.GetBy(), Reason: c.GetReason(), Since: instant(c.GetSince()), Until: instant(c.GetUntil())}
	}
	if q := d.GetQuarantine(); q != nil {
		row.Quarantine = &quarantineRow{Reason: q.GetReason(), Since: instant(q.GetSince()), Until: instant(q.GetUntil())}
	}
	if w := d.GetWarning(); w != nil {
		row.Warning = &warningRow{Reason: w.GetReason(), Since: instant(w.GetSince())}
	}
	if until := agent.GetRestingUntil(); until != nil {
		row.Cooldown = &cooldownRow{Reason: agent.GetRestReason(), Until: instant(until), until: until.AsTime()}
	}
	row.Calibration = newCalibrationRow(d.GetCalibration())
	for _, c := range d.GetHistory() {
		row.History = append(row.History, changeRow{
			At: instant(c.GetAt()), State: wire.DeviceState(c.GetState()), By: c.GetBy(), Reason: c.GetReason(),
		})
	}
	return row
}

// instant formats a time for scripts, or returns "".
func instant(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339)
}

// status describes briefly whether the device is connected and gets work.
func (r deviceRow) status() string {
	if r.DeviceState == wire.DeviceState(tilthv1.DeviceState_DEVICE_STATE_READY) {
		if r.Cooldown != nil && time.Now().Before(r.Cooldown.until) {
			return r.State + ", cooldown until " + r.Cooldown.Until
		}
		if r.Warning != nil {
			return r.State + ", warned"
		}
		return r.State
	}
	text := r.DeviceState
	if r.Cordon != nil && r.Cordon.Until != "" {
		text += " until " + r.Cordon.Until
	}
	if r.State != wire.AgentState(tilthv1.AgentState_AGENT_STATE_IDLE) {
		text += ", " + r.State
	}
	return text
}

func (r deviceRow) labels() string {
	text := func(name string) string { return name + "=" + r.Labels[name] }
	return cmp.Or(humanize.Join(slices.Sorted(maps.Keys(r.Labels)), ",", text), humanize.Missing)
}

// changeDevice sets up a command that changes a device's state for a reason, and prints the new state.
func (a *app) changeDevice(c *cobra.Command,
	change func(tracker *client.Client, ctx context.Context, name, by, reason string) (*tilthv1.Device, error)) *cobra.Command {
	var reason string
	c.Args = cobra.ExactArgs(1)
	c.Flags().StringVar(&reason, "reason", "", "reason, shown to others")
	a.jsonFlag(c)
	return a.onTracker(c, func(ctx context.Context, tracker *client.Client, args []string) error {
		d, err := change(tracker, ctx, args[0], owner(), reason)
		if err != nil {
			return err
		}
		row := newDeviceRow(d)
		return a.printResult(row, "device %s: %s\n", row.Device, row.status())
	})
}

func newDevicesCordon(a *app) *cobra.Command {
	var duration time.Duration
	c := &cobra.Command{
		Use: "cordon DEVICE", Short: "Give a device no new work, for some time or until it is uncordoned",
		Long: `Give a device no new work, for some time or until it is uncordoned.

The device finishes its current work ('tilth devices drain' waits for that) and stays
joined. With --for, the cordon expires by itself, also across restarts of the tracker.`,
		Example: "  tilth devices cordon rack3/board7 --for 1h --reason 'a look at the fan'",
	}
	c.Flags().DurationVar(&duration, "for", 0, "how long, such as 90m (default until it is uncordoned)")
	atLeast(c, 1, "for")
	return a.changeDevice(c, func(tracker *client.Client, ctx context.Context, name, by, reason string) (*tilthv1.Device, error) {
		return tracker.Cordon(ctx, name, by, reason, duration)
	})
}

func newDevicesUncordon(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "uncordon DEVICE", Short: "Give a cordoned or drained device work again",
		Example: "  tilth devices uncordon rack3/board7",
	}
	return a.changeDevice(c, (*client.Client).Uncordon)
}

func newDevicesRecalibrate(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "recalibrate DEVICE", Short: "Accept a device's current speed: discard its reference and end its quarantine",
		Long: `Accept a device's current speed: discard its reference and end its quarantine.

Its next calm calibrations become the new reference.`,
		Example: "  tilth devices recalibrate rack3/board7 --reason 'clocked down for the summer'",
	}
	return a.changeDevice(c, (*client.Client).Recalibrate)
}

func newDevicesDrain(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "drain DEVICE", Short: "Cordon a device, and wait until it has finished its work",
		Long: `Cordon a device, and wait until it has finished its work.

An interrupt only ends the wait: the device stays cordoned until it is uncordoned.`,
		Example: "  tilth devices drain rack3/board7 --reason 'new kernel' && ssh board7 reboot",
	}
	return a.changeDevice(c, func(tracker *client.Client, ctx context.Context, name, by, reason string) (*tilthv1.Device, error) {
		d, err := tracker.Drain(ctx, name, by, reason, func(d *tilthv1.Device) {
			fmt.Fprintf(a.stderr, "device %s: waiting for %d leases\n", name, d.GetLeases())
		})
		if ctx.Err() != nil {
			return nil, fmt.Errorf("device %s stays cordoned, but has not finished its work: see 'tilth devices show'", name)
		}
		return d, err
	})
}
