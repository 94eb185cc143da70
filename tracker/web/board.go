package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/internal/wire/names"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// mostLive are the devices up to which a board loads itself again when time passes.
const mostLive = 2500

// tile is a device on a board.
type tile struct {
	Name string
	// Class is what its colour follows, Text all that is known of it.
	Class, Text string
}

// shelf is the devices with one value of a label, by state.
type shelf struct {
	Value  string
	Counts []figure
	Tiles  []tile
}

// boardPage is devices as tiles, shelf by shelf.
type boardPage struct {
	devicesQuery
	// By is the key of the label whose values make shelves, Keys are those that there are.
	By      string
	Keys    []string
	Shelves []shelf
	// More says that there are devices beyond the bound.
	More bool
	// Devices are those with a place, States how many of them are in each.
	Devices int
	States  []figure
}

// board shows devices by the values of a label.
func (s *Site) board(w http.ResponseWriter, r *http.Request, q devicesQuery) error {
	found, next, err := s.findDevices(r.Context(), q, "", mostDevices)
	if err != nil {
		return err
	}
	p := boardPage{devicesQuery: q, By: r.URL.Query().Get("by"), Keys: labelKeys(found), More: next != "", Devices: len(found)}
	if p.By == "" && len(p.Keys) > 0 {
		p.By = p.Keys[0]
	}
	byValue, states := map[string][]tile{}, map[string]float64{}
	for _, d := range found {
		t := tileOf(d)
		value := d.GetAgent().GetSpec().GetLabels()[p.By]
		byValue[value] = append(byValue[value], t)
		states[t.Class]++
	}
	p.States = counted(states)
	for _, value := range slices.SortedFunc(maps.Keys(byValue), byNumber) {
		states := map[string]float64{}
		for _, t := range byValue[value] {
			states[t.Class]++
		}
		p.Shelves = append(p.Shelves, shelf{value, counted(states), byValue[value]})
	}
	l := layout{Title: "Devices", Section: "devices", Page: p}
	if p.Devices <= mostLive {
		l.Live = LivePath
	}
	return s.render(w, r, http.StatusOK, "board", l)
}

// counted are counts by name, in order.
func counted(counts map[string]float64) (out []figure) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, figure{name, counts[name]})
	}
	return out
}

// labelKeys are the keys of labels, those first that most devices have.
func labelKeys(devices []deviceRow) []string {
	n := map[string]int{}
	for _, d := range devices {
		for key := range d.GetAgent().GetSpec().GetLabels() {
			n[key]++
		}
	}
	return slices.SortedFunc(maps.Keys(n), func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), strings.Compare(a, b)) })
}

// byNumber orders numbers by their value, before other texts.
func byNumber(a, b string) int {
	x, errA := strconv.Atoi(a)
	y, errB := strconv.Atoi(b)
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}

// tileOf is a device's tile.
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

// tileClass is one word for a device: what keeps work from it, or what its runner does.
func tileClass(d *tilthv1.Device) string {
	switch {
	case d.GetAgent().GetState() == tilthv1.AgentState_AGENT_STATE_GONE:
		return "gone"
	case d.GetState() != tilthv1.DeviceState_DEVICE_STATE_READY:
		return names.DeviceState(d.GetState())
	case d.GetWarning() != nil:
		return "warned"
	case d.GetAgent().GetState() == tilthv1.AgentState_AGENT_STATE_BUSY:
		return "busy"
	}
	return "idle"
}

// mostWorkText bounds what is told of what a device does, in bytes.
const mostWorkText = 200

// workText says what a device does; empty when that is nothing.
func workText(work []*tilthv1.DeviceWork) string {
	var parts []string
	for _, w := range work {
		what := "runs " + w.GetJobName()
		if w.GetTask() != "" {
			what = "measures " + w.GetTask() + " of " + w.GetJobName()
		}
		parts = append(parts, what)
	}
	return cut(strings.Join(parts, ", "), mostWorkText)
}
