package web

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
	if p.Devices <= maxLive {
		l.Live = LivePath
	}
	return s.render(w, r, http.StatusOK, "board", l)
}

// counted returns counts sorted by name.
func counted(counts map[string]float64) (out []figure) {
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
