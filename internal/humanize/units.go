package humanize

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Missing stands for an absent value.
const Missing = "-"

// Seconds formats a duration with three significant digits and a suitable unit, or Missing if it is not positive.
func Seconds(s float64) string { return small(s, "s") }

// Joules formats an energy from nJ to J, or Missing if it is not positive.
func Joules(j float64) string { return small(j, "J") }

// small formats a quantity with three digits and a metric prefix.
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

// GFLOPS formats a rate in GFLOP/s, or Missing.
func GFLOPS(flop, seconds float64) string {
	if !(flop > 0) || !(seconds > 0) {
		return Missing
	}
	return digits(flop / seconds / 1e9)
}

// TFLOPS formats a rate in TFLOP/s, or Missing.
func TFLOPS(flop, seconds float64) string { return GFLOPS(flop/1e3, seconds) }

// GFLOP formats a number of floating-point operations in units of 1e9, or Missing.
func GFLOP(flop float64) string { return GFLOPS(flop, 1) }

// Ratio formats before/after as a speed-up, such as "2.31x", or Missing if either is unknown.
func Ratio(before, after float64) string {
	if !(before > 0) || !(after > 0) {
		return Missing
	}
	return fmt.Sprintf("%.2fx", before/after)
}

// Percent formats part/whole in percent, such as "87 %", or Missing if either is unknown.
func Percent(part, whole float64) string {
	if !(part > 0) || !(whole > 0) {
		return Missing
	}
	return fmt.Sprintf("%.0f %%", 100*part/whole)
}

// Share is Percent for a part that cannot exceed the whole. Small excesses are measurement errors and are
// shown as the whole. Large ones yield Missing, because the whole must then be wrong.
func Share(part, whole float64) string {
	switch {
	case part > 1.1*whole:
		return Missing
	case part > whole:
		part = whole
	}
	return Percent(part, whole)
}

// Range formats two durations, such as "1.50–1.57 ms", or Missing.
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

// Interval formats the confidence interval of a median. It shows the level if it is below the usual one. A
// level of 0, as for a single sample, yields no interval.
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

// Bytes formats a size in binary units.
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

// Clock formats a duration as minutes and seconds, with hours if needed.
func Clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Instant formats a time to the second in RFC 3339 and UTC, or Missing.
func Instant(t time.Time) string {
	if t.IsZero() || t.Unix() == 0 {
		return Missing
	}
	return t.UTC().Format(time.RFC3339)
}

// Ago formats a time relative to now: "3 min ago", "in 2 days".
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

// span formats a duration in its largest unit, rounded down.
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

// Digest shortens a digest for display.
func Digest(d string) string { return d[:min(len(d), 12)] }

// Rate formats a number per second with three significant digits.
func Rate(perSecond float64) string { return digits(perSecond) + "/s" }

// digits formats three significant digits without an exponent, where a person would not use one.
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

// Join joins the texts of items.
func Join[T any](items []T, separator string, text func(T) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = text(item)
	}
	return strings.Join(texts, separator)
}

// Counts formats counts by name, such as "crash 2, timeout 1", or returns Missing without counts.
func Counts(counts map[string]int) string {
	text := func(name string) string { return name + " " + strconv.Itoa(counts[name]) }
	return cmp.Or(Join(slices.Sorted(maps.Keys(counts)), ", ", text), Missing)
}

// ErrDuration is the error for a text that is not a duration. It lists the accepted forms.
var ErrDuration = errors.New("want a time such as 90s, 5m, 1h, 5min, 1h30m or 2d")

// ParseDuration parses a duration like time.ParseDuration. It also accepts min for minutes, and days as the first
// unit.
func ParseDuration(text string) (time.Duration, error) {
	days, rest, found := strings.Cut(strings.ReplaceAll(text, "min", "m"), "d")
	if !found {
		days, rest = "0", days
	} else if rest == "" {
		rest = "0"
	}
	n, notDays := strconv.ParseUint(days, 10, 16)
	d, err := time.ParseDuration(rest)
	whole := time.Duration(n) * 24 * time.Hour
	if notDays != nil || err != nil || found && (d < 0 || whole+d < whole) {
		return 0, ErrDuration
	}
	return whole + d, nil
}
