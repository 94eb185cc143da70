package web

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Bounds on devices: per page, per call, and in total when searching for matches. A page ends at the end of a call, so
// it may list almost twice as many.
const (
	devicesOfPage = 200
	devicesOfCall = 1000
	maxDevices    = 10_000
)

// deviceRow is a device in a list.
type deviceRow struct {
	*tilthv1.Device
	// Shown is its state, Why the reason why it gets no work.
	Shown, Why string
}

// devicesQuery is a filter for devices.
type devicesQuery struct{ Label, State string }

func (q devicesQuery) matches(d deviceRow) bool {
	return labelled(d.GetAgent().GetSpec().GetLabels(), q.Label) && contains(d.Shown, q.State)
}

// labelled reports whether any label matches: exactly for key=value, else by substring.
func labelled(labels map[string]string, asked string) bool {
	if key, value, is := strings.Cut(asked, "="); is {
		got, has := labels[key]
		return has && got == value
	}
	return contains(labelsText(labels), asked)
}

// findDevices returns about limit matching devices from a page token on, and the next token.
func (s *Site) findDevices(ctx context.Context, q devicesQuery, token string, limit int) (found []deviceRow, next string, err error) {
	return search(limit, maxDevices, token, func(_ int, token string) (rows []deviceRow, next string, err error) {
		listed, err := s.devices.ListDevices(ctx, &tilthv1.ListDevicesRequest{PageSize: uint32(min(limit, devicesOfCall)), PageToken: token})
		for _, d := range listed.GetDevices() {
			rows = append(rows, newDeviceRow(d))
		}
		return rows, listed.GetNextPageToken(), err
	}, q.matches)
}

// classesOf returns the device classes of devices.
func classesOf(devices []deviceRow) map[string]bool {
	classes := map[string]bool{}
	for _, d := range devices {
		for _, c := range d.GetAgent().GetSpec().GetDeviceClasses() {
			classes[c.GetName()] = true
		}
	}
	return classes
}

// devicesPage is one page of devices, with all other agents.
type devicesPage struct {
	devicesQuery
	Next    string
	Devices []deviceRow
	Agents  []*tilthv1.Agent
}

func (s *Site) listDevices(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	p := devicesPage{devicesQuery: devicesQuery{Label: in.Get("label"), State: in.Get("state")}}
	if in.Get("view") == "board" {
		return s.board(w, r, p.devicesQuery)
	}
	found, next, err := s.findDevices(r.Context(), p.devicesQuery, in.Get("page"), devicesOfPage)
	if err != nil {
		return err
	}
	if p.Devices = found; next != "" {
		p.Next = "?" + query("label", p.Label, "state", p.State, "page", next)
	}
	for _, kind := range []tilthv1.AgentKind{tilthv1.AgentKind_AGENT_KIND_TUNER, tilthv1.AgentKind_AGENT_KIND_BUILDER} {
		agents, err := s.agents.ListAgents(r.Context(), &tilthv1.ListAgentsRequest{Kind: kind, PageSize: devicesOfPage})
		if err != nil {
			return err
		}
		p.Agents = append(p.Agents, agents.GetAgents()...)
	}
	return s.render(w, r, http.StatusOK, "devices", layout{Title: "Devices", Section: "devices", Live: LivePath, Page: p})
}

// newDeviceRow describes the state of a device and its runner.
func newDeviceRow(d *tilthv1.Device) deviceRow {
	runner, reason := wire.AgentState(d.GetAgent().GetState()), d.GetAgent().GetRestReason()
	if state := d.GetState(); state != tilthv1.DeviceState_DEVICE_STATE_READY {
		shown := wire.DeviceState(state)
		if runner != wire.AgentState(tilthv1.AgentState_AGENT_STATE_IDLE) {
			shown += ", " + runner
		}
		return deviceRow{d, shown, cmp.Or(d.GetCordon().GetReason(), d.GetQuarantine().GetReason())}
	}
	if d.GetWarning() != nil {
		return deviceRow{d, runner + ", warned", cmp.Or(reason, d.GetWarning().GetReason())}
	}
	return deviceRow{d, runner, reason}
}

// labelsText formats labels, sorted by key.
func labelsText(labels map[string]string) string {
	return humanize.Join(slices.Sorted(maps.Keys(labels)), " ", func(k string) string { return k + "=" + labels[k] })
}

// query encodes names and values as a URL query.
func query(pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

// devicePage shows one device.
type devicePage struct {
	deviceRow
	History []*tilthv1.DeviceChange
	Classes []string
	Actions []string
	// Drift and Heat plot recent calibrations; empty without any.
	Drift, Heat template.HTML
}

func (s *Site) device(w http.ResponseWriter, r *http.Request) error {
	got, err := s.devices.GetDevice(r.Context(), &tilthv1.GetDeviceRequest{Name: r.URL.Query().Get("name")})
	if err != nil {
		return err
	}
	d := got.GetDevice()
	p := devicePage{deviceRow: newDeviceRow(d), History: slices.Clone(d.GetHistory()), Actions: s.deviceActions(r, d)}
	slices.Reverse(p.History)
	p.Drift, p.Heat = driftOf(d.GetCalibration().GetCourse()), heatOf(d.GetCalibration().GetCourse())
	for _, c := range d.GetAgent().GetSpec().GetDeviceClasses() {
		p.Classes = append(p.Classes, c.GetName())
	}
	return s.render(w, r, http.StatusOK, "device", layout{Title: d.GetAgent().GetSpec().GetName(), Section: "devices", Live: LivePath, Page: p})
}

// Clocks formats the device's clock frequencies.
func (p devicePage) Clocks() (out []string) {
	for _, c := range p.GetCalibration().GetSurroundings().GetClocks() {
		text := fmt.Sprintf("%s: %.2f GHz", c.GetDomain(), c.GetHertz()/1e9)
		if c.GetMostHertz() > 0 {
			text += fmt.Sprintf(" of %.2f", c.GetMostHertz()/1e9)
		}
		out = append(out, text)
	}
	return out
}

// maxLive bounds the devices on a board that refreshes itself.
const maxLive = 2500

// tile is a device on a board.
type tile struct {
	Name string
	// Class selects the colour, Text is the tooltip.
	Class, Text string
}

// shelf groups the devices with one value of a label.
type shelf struct {
	Value  string
	Counts []figure
	Tiles  []tile
}

// boardPage shows devices as tiles on shelves.
type boardPage struct {
	devicesQuery
	// By is the label key that groups the shelves; Keys are the available ones.
	By      string
	Keys    []string
	Shelves []shelf
	// More is set if there are more devices than the bound.
	More bool
	// Devices is the number of tiles, States their number by state.
	Devices int
	States  []figure
}

// board renders devices grouped by a label.
func (s *Site) board(w http.ResponseWriter, r *http.Request, q devicesQuery) error {
	found, next, err := s.findDevices(r.Context(), q, "", maxDevices)
	if err != nil {
		return err
	}
	p := boardPage{devicesQuery: q, By: r.URL.Query().Get("by"), Keys: labelKeys(found), More: next != "", Devices: len(found)}
	if p.By == "" && len(p.Keys) > 0 {
		p.By = p.Keys[0]
	}
	all, byValue := []tile{}, map[string][]tile{}
	for _, d := range found {
		t, value := tileOf(d), d.GetAgent().GetSpec().GetLabels()[p.By]
		all, byValue[value] = append(all, t), append(byValue[value], t)
	}
	p.States = counted(all)
	for _, value := range slices.SortedFunc(maps.Keys(byValue), byNumber) {
		p.Shelves = append(p.Shelves, shelf{value, counted(byValue[value]), byValue[value]})
	}
	l := layout{Title: "Devices", Section: "devices", Page: p}
	if p.Devices <= maxLive {
		l.Live = LivePath
	}
	return s.render(w, r, http.StatusOK, "board", l)
}

// counted returns the number of tiles of each class, sorted by name.
func counted(tiles []tile) (out []figure) {
	counts := map[string]float64{}
	for _, t := range tiles {
		counts[t.Class]++
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, figure{name, counts[name]})
	}
	return out
}

// labelKeys returns all label keys, most frequent first.
func labelKeys(devices []deviceRow) []string {
	n := map[string]int{}
	for _, d := range devices {
		for key := range d.GetAgent().GetSpec().GetLabels() {
			n[key]++
		}
	}
	return slices.SortedFunc(maps.Keys(n), func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), strings.Compare(a, b)) })
}

// byNumber orders numbers by value, before other strings.
func byNumber(a, b string) int {
	number := func(text string) float64 {
		if n, err := strconv.Atoi(text); err == nil {
			return float64(n)
		}
		return math.Inf(1)
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), strings.Compare(a, b))
}

// tileOf returns a device's tile.
func tileOf(d deviceRow) tile {
	name := d.GetAgent().GetSpec().GetName()
	parts := []string{name, d.Shown}
	if c := d.GetCalibration(); c.GetReference() != nil {
		parts = append(parts, fmt.Sprintf("drift %.1f %%", 100*c.GetDrift()))
	}
	if doing := workText(d.GetWork()); doing != "" {
		parts = append(parts, doing)
	}
	if d.Why != "" {
		parts = append(parts, d.Why)
	}
	return tile{Name: name, Class: tileClass(d.Device), Text: strings.Join(parts, "; ")}
}

// tileClass returns one word for a device: why it gets no work, or what its runner does.
func tileClass(d *tilthv1.Device) string {
	switch {
	case d.GetAgent().GetState() == tilthv1.AgentState_AGENT_STATE_GONE:
		return "gone"
	case d.GetState() != tilthv1.DeviceState_DEVICE_STATE_READY:
		return wire.DeviceState(d.GetState())
	case d.GetWarning() != nil:
		return "warned"
	case d.GetAgent().GetState() == tilthv1.AgentState_AGENT_STATE_BUSY:
		return "busy"
	}
	return "idle"
}

// maxWorkText bounds the description of a device's work, in bytes.
const maxWorkText = 200

// workText describes what a device is doing, or returns "".
func workText(work []*tilthv1.DeviceWork) string {
	var parts []string
	for _, w := range work {
		what := "runs " + w.GetJobName()
		if w.GetTask() != "" {
			what = "measures " + w.GetTask() + " of " + w.GetJobName()
		}
		parts = append(parts, what)
	}
	return cut(strings.Join(parts, ", "), maxWorkText)
}
