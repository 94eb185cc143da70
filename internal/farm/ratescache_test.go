package farm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
)

// measuring simulates measurements of a machine's rates. Each measurement returns the next rates.
type measuring struct {
	*testing.T
	path  string
	finds []float64
}

func (m *measuring) at(now time.Time) float64 {
	m.Helper()
	rates, err := daily(m.path, slow, now, func() (roofline.Rates, error) {
		if len(m.finds) == 0 {
			return roofline.Rates{}, errors.New("no compiler")
		}
		found := m.finds[0]
		m.finds = m.finds[1:]
		return roofline.Rates{FlopPerSecond: found, Stores: []roofline.Store{{Name: "memory", BytesPerSecond: 1}}}, nil
	})
	if err != nil {
		m.Fatal(err)
	}
	return rates.FlopPerSecond
}

// slow is the target whose rates are measured.
var slow, _ = target.Parse("x86-64-v3", 2)

var morning = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// TestRatesAreTheMaximumOfADay is a regression test: every command measured the machine and got different rates. With
// a cache, a machine that was busy in the morning counted as slow all day.
func TestRatesAreTheMaximumOfADay(t *testing.T) {
	m := &measuring{t, filepath.Join(t.TempDir(), "rates", "machine.json"), []float64{5, 9, 7, 6}}
	for _, step := range []struct {
		name  string
		after time.Duration
		want  float64
	}{
		{"a busy machine", 0, 5}, {"soon after", 9 * time.Minute, 5}, {"when it is idle", 10 * time.Minute, 9},
		{"soon after that", 19 * time.Minute, 9}, {"when it is busy again", time.Hour, 9}, {"on the next day", 14 * time.Hour, 6},
		{"without a compiler", 20 * time.Hour, 6},
	} {
		if got := m.at(morning.Add(step.after)); got != step.want {
			t.Errorf("%s the rate is %g, want %g", step.name, got, step.want)
		}
	}
}

// TestRatesWhoseTimeIsOddAreMeasuredAgain covers clocks that were set back, and older versions without times.
func TestRatesWhoseTimeIsOddAreMeasuredAgain(t *testing.T) {
	m := &measuring{t, filepath.Join(t.TempDir(), "machine.json"), []float64{5, 7, 3, 1}}
	m.at(morning)
	if got := m.at(morning.Add(-time.Minute)); got != 7 {
		t.Errorf("when the clock was set back the rate is %g", got)
	}
	for content, want := range map[string]float64{
		`{"day":"2026-03-01","rates":{"flop_per_second":4,"stores":[{"name":"memory","bytes_per_second":1}]}}`: 4,
		`{"day":"2026-03-01","rates":{}}`: 3,
	} {
		m.finds = []float64{3}
		if err := os.WriteFile(m.path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := m.at(morning); got != want || len(m.finds) > 0 {
			t.Errorf("%s: the rate is %g, want %g", content, got, want)
		}
	}
}

func TestMachineThatCannotBeMeasuredHasNoRates(t *testing.T) {
	failure := errors.New("no compiler")
	_, err := daily(filepath.Join(t.TempDir(), "none"), slow, morning, func() (roofline.Rates, error) { return roofline.Rates{}, failure })
	if !errors.Is(err, failure) {
		t.Errorf("a failure becomes %v", err)
	}
}

func TestRatesAreKeptByDeviceClass(t *testing.T) {
	var paths []string
	for _, threads := range []int{1, 2} {
		machine, err := target.Parse("x86-64-v3", threads)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, ratesPath("cache", machine), ratesPath("cache", machine.WithToolchain("clang-19.1.7")))
	}
	if paths[0] != paths[1] || paths[0] == paths[2] {
		t.Errorf("the files are %q", paths)
	}
}

// TestCachedRatesBelongToAMachine checks that the targets of the machine, with any compiler, are recognised by name.
func TestCachedRatesBelongToAMachine(t *testing.T) {
	cache := t.TempDir()
	m := &measuring{t, ratesPath(cache, slow), []float64{5}}
	m.at(morning)
	known := RatesIn(cache)
	if len(known) != 1 || known[0].FlopPerSecond != 5 || !known[0].CPU || !strings.HasPrefix(slow.WithToolchain("clang-19").Fingerprint(), known[0].Machine+"-") {
		t.Errorf("the rates of %s are %+v", slow.Fingerprint(), known)
	}
}
