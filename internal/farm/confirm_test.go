package farm

import (
	"os"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner"
)

// TestScheduleFromElsewhereIsMeasuredOnce checks that results are cached. Which of two schedules is the faster one is
// not checked here, because a busy machine can make either one slow.
func TestScheduleFromElsewhereIsMeasuredOnce(t *testing.T) {
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	on, err := registry.Target("native", 1)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := hostlock.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	if err := toolchaintest.ShareCaches(cache); err != nil {
		t.Fatal(err)
	}
	c, err := OpenConfirmer(ConfirmConfig{Target: on.WithToolchain(tc.For(on)), Toolchain: tc, CacheDir: cache, Lock: lock})
	if err != nil {
		t.Fatal(err)
	}
	w := kerneltest.Product(t, 128, 128, 128)
	s, err := registry.Space(w, on, schedule.Default)
	if err != nil {
		t.Fatal(err)
	}
	standard, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	loops := schedule.New(w)
	first := map[*schedule.Schedule]Confirmation{}
	for _, one := range []*schedule.Schedule{standard, loops} {
		found, err := c.Confirm(t.Context(), one, standard)
		slower := strings.Contains(found.Refused, "and the default schedule ")
		if err != nil || found.Seconds <= 0 || found.DefaultSeconds <= 0 || found.Refused != "" && !slower {
			t.Errorf("%+v, %v", found, err)
		}
		first[one] = found
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c.compiler = nil // any build would fail
	for one, want := range first {
		if got, err := c.Confirm(t.Context(), one, standard); err != nil || got != want {
			t.Errorf("known: %+v, %v; want %+v", got, err, want)
		}
	}
}

func TestScheduleThatIsWrongHereIsRefused(t *testing.T) {
	candidates := []builder.Candidate{{Digest: "theirs"}, {Digest: "default"}}
	right := func(samples ...float64) runner.Outcome {
		return runner.Outcome{Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, Samples: samples}
	}
	wrong := runner.Outcome{Error: tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT, Message: "y[3]"}
	for name, c := range map[string]struct {
		theirs, standard runner.Outcome
		refused          string
	}{
		"wrong":             {wrong, right(1), "wrong_result: y[3]"},
		"slower":            {right(2), right(1), "it takes 2.00 s here, and the default schedule 1.00 s"},
		"as fast":           {right(1), right(1), ""},
		"slower each turn":  {right(3, 5, 4, 3, 4, 5), right(2, 4, 3, 2, 3, 4), "it takes 4.00 s here, and the default schedule 3.00 s"},
		"noise":             {right(3, 5, 4, 3, 4, 5), right(4, 4, 3, 4, 3, 4), ""},
		"nothing beside it": {right(2), wrong, ""},
		"faster":            {right(1), right(2), ""},
	} {
		if got := judge(map[string]runner.Outcome{"theirs": c.theirs, "default": c.standard}, candidates); got.Refused != c.refused {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
