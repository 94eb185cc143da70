package cuda

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/backend"
)

// Bits of the clock throttle reasons, from the library's documentation. The power cap is a normal condition under
// load; its effect is visible in the clocks.
const (
	slowedByPower    = 0x4
	slowedByHardware = 0x8
	tooHot           = 0x20
	muchTooHot       = 0x40
	powerBrake       = 0x80
)

// The fields of a line of the monitor, in order.
const (
	celsius = iota
	reasons
	multiprocessorsNow
	multiprocessorsMax
	memoryNow
	memoryMax
	corrected
	uncorrected
	healthFields
)

// health parses a line of the monitor program.
func health(line string) (h backend.Health, err error) {
	word, rest, _ := strings.Cut(line, " ")
	if word == "unknown" {
		h.Unknown = rest
		return h, nil
	}
	fields := strings.Fields(rest)
	if word != "health" || len(fields) != healthFields {
		return h, fmt.Errorf("unexpected line of the monitor: %q", line)
	}
	var n [healthFields]int64
	for k := range n {
		if n[k], err = strconv.ParseInt(fields[k], 10, 64); err != nil {
			return h, fmt.Errorf("unexpected line of the monitor: %q", line)
		}
	}
	if n[celsius] >= 0 {
		h.Celsius = []float64{float64(n[celsius])}
	}
	h.Clocks = append(clock("multiprocessors", n[multiprocessorsNow], n[multiprocessorsMax]), clock("memory", n[memoryNow], n[memoryMax])...)
	if n[reasons] >= 0 {
		slowed := n[reasons]&(slowedByPower|slowedByHardware|tooHot|muchTooHot|powerBrake) != 0
		h.Slowed = &slowed
		h.Impairments = slowdowns(n[reasons])
	}
	if n[corrected] >= 0 && n[uncorrected] >= 0 {
		h.Errors = &backend.MemoryErrors{Corrected: uint64(n[corrected]), Uncorrected: uint64(n[uncorrected])}
	}
	if n[uncorrected] > 0 {
		h.Impairments = append(h.Impairments, fmt.Sprintf("has %d uncorrected errors in its memory since its driver started (reset it)", n[uncorrected]))
	}
	return h, nil
}

// clock returns a reported clock in MHz.
func clock(part string, now, limit int64) []backend.DeviceClock {
	if now < 0 {
		return nil
	}
	return []backend.DeviceClock{{Part: part, Hertz: 1e6 * float64(now), Max: 1e6 * float64(max(limit, 0))}}
}

// slowdowns returns the abnormal reasons for reduced clocks.
func slowdowns(reasons int64) (list []string) {
	switch {
	case reasons&(tooHot|muchTooHot) != 0:
		list = append(list, "is slowed down to cool")
	case reasons&(slowedByHardware|powerBrake) == slowedByHardware:
		list = append(list, "is slowed down by its hardware")
	}
	if reasons&powerBrake != 0 {
		list = append(list, "is slowed down by its power supply")
	}
	return list
}
