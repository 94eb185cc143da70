package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// drainWait is how long one call waits for a device to drain.
const drainWait = 20 * time.Second

// Devices returns all devices that ever joined, by name.
func (c *Client) Devices(ctx context.Context) ([]*tilthv1.Device, error) {
	request := &tilthv1.ListDevicesRequest{PageSize: itemsPerPage}
	return list(ctx, c, "list devices", request, &request.PageToken, c.devices.ListDevices, (*tilthv1.ListDevicesResponse).GetDevices)
}

// Device returns one device.
func (c *Client) Device(ctx context.Context, name string) (*tilthv1.Device, error) {
	return get(ctx, c, fmt.Sprintf("show device %q", name), &tilthv1.GetDeviceRequest{Name: name}, c.devices.GetDevice, (*tilthv1.GetDeviceResponse).GetDevice)
}

// Cordon stops granting work to a device for a duration, or, if zero, until it is uncordoned.
func (c *Client) Cordon(ctx context.Context, name, by, reason string, duration time.Duration) (*tilthv1.Device, error) {
	request := &tilthv1.CordonDeviceRequest{Name: name, By: by, Reason: reason}
	if duration != 0 {
		request.Duration = durationpb.New(duration)
	}
	return get(ctx, c, fmt.Sprintf("cordon device %q", name), request, c.devices.CordonDevice, (*tilthv1.CordonDeviceResponse).GetDevice)
}

// Uncordon lets a device receive work again.
func (c *Client) Uncordon(ctx context.Context, name, by, reason string) (*tilthv1.Device, error) {
	return get(ctx, c, fmt.Sprintf("uncordon device %q", name), &tilthv1.UncordonDeviceRequest{Name: name, By: by, Reason: reason}, c.devices.UncordonDevice, (*tilthv1.UncordonDeviceResponse).GetDevice)
}

// Recalibrate discards the calibration reference of a device and ends its quarantine.
func (c *Client) Recalibrate(ctx context.Context, name, by, reason string) (*tilthv1.Device, error) {
	return get(ctx, c, fmt.Sprintf("recalibrate device %q", name), &tilthv1.RecalibrateDeviceRequest{Name: name, By: by, Reason: reason}, c.devices.RecalibrateDevice, (*tilthv1.RecalibrateDeviceResponse).GetDevice)
}

// Drain cordons a device and returns when its leases in flight have ended, also across restarts of the tracker. If ctx
// ends, it returns the cause, and the device stays cordoned. waiting is called with the device during the drain.
func (c *Client) Drain(ctx context.Context, name, by, reason string, waiting func(*tilthv1.Device)) (*tilthv1.Device, error) {
	if _, err := c.Device(ctx, name); err != nil {
		return nil, err
	}
	request := &tilthv1.DrainDeviceRequest{Name: name, By: by, Reason: reason}
	for {
		var response *tilthv1.DrainDeviceResponse
		err := retry.Do(ctx, c.log, retry.Policy{}, "DrainDevice", func(ctx context.Context) (err error) {
			response, err = c.devices.DrainDevice(ctx, request)
			return err
		})
		switch d := response.GetDevice(); {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, c.explain(fmt.Sprintf("drain device %q", name), err)
		case d.GetState() != tilthv1.DeviceState_DEVICE_STATE_DRAINING:
			return d, nil
		default:
			waiting(d)
		}
		request.Wait = durationpb.New(drainWait)
	}
}

// Device is a device class to tune for.
type Device struct {
	// Target has no toolchain, unless FindTarget returned it.
	*target.Target
	// Machine holds the peak rates (roofline.Rates as JSON); nil if the runner does not know them.
	Machine []byte
}

// FindTarget chooses a target among the devices and builders of the farm. key is a device name, a device
// class or a label (rack=3); it may be empty if all devices are of one kind. Zero threads means the maximum
// of the device. The objective is target.Energy, which requires a meter, or empty for latency.
func (c *Client) FindTarget(ctx context.Context, key string, threads int, objective string) (*Device, error) {
	runners, err := c.Agents(ctx, tilthv1.AgentKind_AGENT_KIND_RUNNER)
	if err != nil {
		return nil, err
	}
	builders, err := c.Agents(ctx, tilthv1.AgentKind_AGENT_KIND_BUILDER)
	if err != nil {
		return nil, err
	}
	machine, err := chooseDevice(present(runners), deviceRequest{key, threads, objective})
	if err != nil {
		return nil, c.at(err)
	}
	var offered []string
	for _, b := range present(builders) {
		offered = append(offered, b.GetSpec().GetToolchains()...)
	}
	name, err := NewestToolchain(offered, machine.Target)
	if err != nil {
		return nil, c.at(err)
	}
	machine.Target = machine.WithToolchain(name)
	return machine, nil
}

func present(agents []*tilthv1.Agent) []*tilthv1.Agent {
	return slices.DeleteFunc(agents, func(a *tilthv1.Agent) bool { return a.GetState() == tilthv1.AgentState_AGENT_STATE_GONE })
}

// chooseDevice returns the device class that all matching devices have in common. It ignores devices with an
// unreadable description.
func chooseDevice(runners []*tilthv1.Agent, w deviceRequest) (*Device, error) {
	if len(runners) == 0 {
		return nil, lacking("no device is there: start one with 'tilth runner'")
	}
	classes := map[string]*Device{}
	known := false
	for _, runner := range runners {
		offered, fit, err := w.bestClass(runner.GetSpec())
		if err != nil && w.key == runner.GetSpec().GetName() {
			return nil, err
		}
		known = known || fit
		if offered != nil {
			classes[offered.DeviceClass()] = offered
		}
	}
	switch {
	case len(classes) == 1:
		for _, t := range classes {
			return t, nil
		}
	case len(classes) > 1:
		return nil, errors.New("there are several kinds of devices: choose one with --device (see 'tilth devices list')")
	case known && w.objective == target.Energy:
		return nil, lacking("no such device has an energy meter: see 'tilth devices show', and 'tilth doctor' on its machine")
	case known:
		return nil, lacking("no such device offers %d threads: see 'tilth devices show', or start its runner with --threads %d", w.threads, w.threads)
	}
	return nil, lacking("no device is %q: see 'tilth devices list'", w.key)
}

// deviceRequest holds the arguments of FindTarget.
type deviceRequest struct {
	key       string
	threads   int
	objective string
}

// bestClass returns the device's class with the requested number of threads, or the most, or nil. fit reports
// whether the device matches the key. The error reports a class with an unreadable description.
func (w deviceRequest) bestClass(spec *tilthv1.AgentSpec) (best *Device, fit bool, err error) {
	for _, class := range spec.GetDeviceClasses() {
		if !fits(spec, class.GetName(), w.key) {
			continue
		}
		fit = true
		t, bad := target.Decode(class.GetDescriptor_())
		if bad != nil {
			err = fmt.Errorf("device %s: class %s: %w", spec.GetName(), class.GetName(), bad)
			continue
		}
		if t.Objective == w.objective && (w.threads == 0 || t.Threads() == w.threads) && (best == nil || t.Threads() > best.Threads()) {
			best = &Device{Target: t, Machine: class.GetMachine()}
		}
	}
	return best, fit, err
}

func fits(spec *tilthv1.AgentSpec, class, key string) bool {
	if key == "" || key == spec.GetName() || key == class {
		return true
	}
	name, value, isLabel := strings.Cut(key, "=")
	own, has := spec.GetLabels()[name]
	return isLabel && has && own == value
}

// NewestToolchain chooses a toolchain of the builders for a target. It prefers clang, whose code is faster,
// then toolchains with an assembler for the target, then the newest version.
func NewestToolchain(offered []string, t *target.Target) (string, error) {
	all := slices.DeleteFunc(slices.Clone(offered), func(name string) bool { return !toolchain.Suits(name, t) })
	if len(all) == 0 {
		return "", lacking("no builder is there: start one with 'tilth builder'")
	}
	return slices.MaxFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), compareVersions(a, b))
	}), nil
}

func rank(name string) (n int) {
	if strings.HasPrefix(name, "clang-") {
		n += 2
	}
	if toolchain.Assembles(name) {
		n++
	}
	return n
}

// compareVersions compares numbers by value: clang-19 is newer than clang-9.
func compareVersions(a, b string) int {
	return slices.CompareFunc(strings.FieldsFunc(a, isSeparator), strings.FieldsFunc(b, isSeparator), func(x, y string) int {
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	})
}

func isSeparator(r rune) bool { return r == '-' || r == '.' }

// Lacking is returned if the farm lacks a device, a builder or a tuner. It is not transient.
type Lacking struct {
	addr string
	// Message names the missing part, the reason and the remedy, on one line.
	Message string
}

func lacking(format string, args ...any) error {
	return &Lacking{Message: fmt.Sprintf(format, args...)}
}

// at adds the tracker's address to an error.
func (c *Client) at(err error) error {
	if l, ok := errors.AsType[*Lacking](err); ok {
		l.addr = c.addr
		return l
	}
	return fmt.Errorf("tracker %s: %w", c.addr, err)
}

// Error implements error.
func (e *Lacking) Error() string {
	if e.addr == "" {
		return e.Message
	}
	return "tracker " + e.addr + ": " + e.Message
}

// CheckFarm checks whether the farm can start a job. It returns a *Lacking error if that requires an action.
// Queued jobs of others, an agent in cooldown or a short silence are no errors. Older trackers are not asked.
func (c *Client) CheckFarm(ctx context.Context, spec *tilthv1.JobSpec) error {
	target := spec.GetTarget()
	response, err := call(ctx, &tilthv1.CheckFarmRequest{
		DeviceClass: target.GetDeviceClass(), Toolchain: target.GetToolchain(), Tuner: spec.GetTuner(),
		Run: spec.GetRun() != nil, Device: spec.GetRun().GetDevice(), Model: spec.GetModel() != nil,
	}, c.jobs.CheckFarm)
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	if err != nil {
		return c.explain("check the farm", err)
	}
	if w := response.GetWait(); isPermanent(w.GetReason()) {
		return &Lacking{addr: c.addr, Message: w.GetMessage()}
	}
	return nil
}

// isPermanent reports whether a reason to wait only ends by an action or after an unknown time.
func isPermanent(r tilthv1.WaitReason) bool {
	switch r {
	case tilthv1.WaitReason_WAIT_REASON_NO_DEVICE, tilthv1.WaitReason_WAIT_REASON_NO_BUILDER, tilthv1.WaitReason_WAIT_REASON_NO_TUNER,
		tilthv1.WaitReason_WAIT_REASON_CORDONED, tilthv1.WaitReason_WAIT_REASON_QUARANTINED:
		return true
	}
	return false
}

// Patience configures how long to wait for a farm that lacks something.
type Patience struct {
	// Waits enables waiting; otherwise the error is returned immediately.
	Waits bool
	// Most is the maximum wait; 0 means no limit.
	Most time.Duration
	// Report is called with the reason for waiting whenever it changes.
	Report func(message string)
}

// pollInterval is the interval between checks of the farm.
const pollInterval = 2 * time.Second

// Try repeats an attempt while it fails for lack of something that may arrive.
func (p Patience) Try(ctx context.Context, attempt func(context.Context) error) error {
	var over <-chan time.Time
	if p.Most > 0 {
		over = time.After(p.Most)
	}
	for said := ""; ; {
		err := attempt(ctx)
		var l *Lacking
		if !errors.As(err, &l) || !p.Waits {
			return err
		}
		if l.Message != said {
			said = l.Message
			p.Report(said)
		}
		select {
		case <-time.After(pollInterval):
		case <-over:
			return fmt.Errorf("waited %v: %w", p.Most, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
