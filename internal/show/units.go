package show

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Missing stands for a value that is not there.
const Missing = "-"

// Seconds shows a duration with three significant digits and the unit that suits it; zero and less is Missing.
func Seconds(s float64) string { return small(s, "s") }

// Joules shows an amount of energy from nJ to J; Missing when there is none.
func Joules(j float64) string { return small(j, "J") }

// small shows a quantity with three digits and a unit that is made smaller.
func small(v float64, unit string) string {
	switch {
	case !(v > 0) || math.IsInf(v, 0):
		return Missing
	case v < 1e-6:
		return digits(v*1e9) + " n" + unit
	case v < 1e-3:
		return digits(v*1e6) + " µ" + unit
	case v < 1:
		return digits(v*1e3) + " m" + unit
	}
	return digits(v) + " " + unit
}

// GFLOPS shows a rate in GFLOP/s; Missing when there is none.
func GFLOPS(flop, seconds float64) string {
	if !(flop > 0) || !(seconds > 0) {
		return Missing
	}
	return digits(flop / seconds / 1e9)
}

// TFLOPS shows a rate in TFLOP/s; Missing when there is none.
func TFLOPS(flop, seconds float64) string { return GFLOPS(flop/1e3, seconds) }

// GFLOP shows a number of floating point operations in units of 1e9; Missing when there is none.
func GFLOP(flop float64) string {
	if !(flop > 0) {
		return Missing
	}
	return digits(flop / 1e9)
}

// Ratio shows before/after as a speed-up, e.g. "2.31x"; Missing when either is unknown.
func Ratio(before, after float64) string {
	if !(before > 0) || !(after > 0) {
		return Missing
	}
	return fmt.Sprintf("%.2fx", before/after)
}

// Percent shows what part of whole, both in the same unit, e.g. "87 %"; Missing when either is unknown.
func Percent(part, whole float64) string {
	if !(part > 0) || !(whole > 0) {
		return Missing
	}
	return fmt.Sprintf("%.0f %%", 100*part/whole)
}

// Share is Percent of what cannot be more than the whole: what measuring leaves above it is the whole, and Missing is
// what is so far above that the whole cannot be known.
func Share(part, whole float64) string {
	switch {
	case part > 1.1*whole:
		return Missing
	case part > whole:
		part = whole
	}
	return Percent(part, whole)
}

// Range shows two durations, e.g. "1.50–1.57 ms"; Missing when there is none.
func Range(low, high float64) string {
	a, b := Seconds(low), Seconds(high)
	if a == Missing || b == Missing {
		return Missing
	}
	value, unit, _ := strings.Cut(a, " ")
	if strings.HasSuffix(b, " "+unit) {
		return value + "–" + b
	}
	return a + "–" + b
}

// Interval is Range for what holds a median with the probability level, which is told where it is below the usual one.
// A level of 0, that of a single sample, is no interval.
func Interval(low, high, level, usual float64) string {
	text := Range(low, high)
	switch {
	case !(level > 0) || text == Missing:
		return Missing
	case level < usual:
		return fmt.Sprintf("%s (%.0f %%)", text, 100*level)
	}
	return text
}

// Bytes shows a size in binary units.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return digits(value) + " " + units[unit]
}

// Clock shows a running time as minutes and seconds, with hours when there are any.
func Clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Instant shows a time in full, to the second, as scripts read it (RFC 3339, in UTC); Missing when there is none.
func Instant(t time.Time) string {
	if t.IsZero() || t.Unix() == 0 {
		return Missing
	}
	return t.UTC().Format(time.RFC3339)
}

// Ago shows a time by how long before now it was, or how long after: "3 min ago", "in 2 days".
func Ago(at, now time.Time) string {
	d := now.Sub(at)
	form := "%s ago"
	if d < 0 {
		d, form = -d, "in %s"
	}
	if d < time.Second {
		return "now"
	}
	return fmt.Sprintf(form, span(d))
}

// span shows a duration by its largest unit, rounded down.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/day)
}

// Digest shortens a digest to what tells a person's digests apart.
func Digest(d string) string { return d[:min(len(d), 12)] }

// digits shows three significant digits, and never an exponent where a person would write the number out.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || a == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a >= 0.001:
		return strconv.FormatFloat(v, 'f', 3-int(math.Ceil(math.Log10(a))), 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
