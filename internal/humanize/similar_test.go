package humanize

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestMistypedNamesAreRecognised(t *testing.T) {
	names := []string{"board", "jobs", "output", "time", "trials", "tune"}
	for word, want := range map[string]string{
		"tnue": "tune", "job": "jobs", "Jobs": "jobs", "trails": "trials", "out": "output", "time-limit": "time",
		"bogus": "", "x": "", "": "", strings.Repeat("tune", 1<<20): "",
	} {
		if want != "" {
			want = ": did you mean --" + want + "?"
		}
		if got := DidYouMean("--", word, names); got != want {
			t.Errorf("%.20s: got %q, want %q", word, got, want)
		}
	}
}

func TestDurationsHaveManyForms(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "5m": 5 * time.Minute, "5min": 5 * time.Minute, "1h": time.Hour, "1h30m": 90 * time.Minute,
		"1h30min": 90 * time.Minute, "2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "250ms": 250 * time.Millisecond, "0": 0, "-3m": -3 * time.Minute,
	} {
		if got, err := ParseDuration(text); got != want || err != nil {
			t.Errorf("%s is %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "d", "1h2d", "-2d", "2d-1h", "5 minutes", "99999d", "60000d2500000h", "tomorrow"} {
		if got, err := ParseDuration(text); !errors.Is(err, ErrDuration) {
			t.Errorf("%q is %v (%v)", text, got, err)
		}
	}
}
