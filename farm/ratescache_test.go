package farm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Every command measured the machine for itself, and each got other rates.
func TestAMachineIsMeasuredOnceADay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rates", "machine.json")
	measured := 0
	ask := func(now time.Time) roofline.Rates {
		t.Helper()
		rates, err := daily(path, now, func() (roofline.Rates, error) {
			measured++
			return roofline.Rates{FlopPerSecond: float64(measured), Stores: []roofline.Store{{Name: "memory", BytesPerSecond: 1}}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return rates
	}
	day := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		at   time.Time
		want float64
	}{{day, 1}, {day.Add(13 * time.Hour), 1}, {day.Add(15 * time.Hour), 2}, {day.Add(20 * time.Hour), 2}} {
		if got := ask(step.at).FlopPerSecond; got != step.want {
			t.Errorf("at %v the rates are those of measurement %g, want %g", step.at, got, step.want)
		}
	}
	if err := os.WriteFile(path, []byte(`{"day":"2026-03-02","rates":{}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := ask(day.Add(21 * time.Hour)).FlopPerSecond; got != 3 {
		t.Errorf("a damaged file gives measurement %g", got)
	}
	failure := errors.New("no compiler")
	if _, err := daily(filepath.Join(t.TempDir(), "none"), day, func() (roofline.Rates, error) { return roofline.Rates{}, failure }); !errors.Is(err, failure) {
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
