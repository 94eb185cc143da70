package policy_test

import (
	"testing"

	"github.com/tilth-dev/tilth/tracker/policy"
)

func TestOwnersShareHasTheDefaultsForWhatItLeavesOut(t *testing.T) {
	shares := policy.Shares{
		Default: policy.Share{Jobs: 3, Trials: 100},
		Owners:  map[string]policy.Share{"ada": {Weight: 2, Trials: 500}},
	}
	for owner, want := range map[string]policy.Share{
		"ada": {Weight: 2, Jobs: 3, Trials: 500},
		"bob": {Weight: 1, Jobs: 3, Trials: 100},
	} {
		if got := shares.Of(owner); got != want {
			t.Errorf("%s may have %+v, want %+v", owner, got, want)
		}
	}
}

func TestBoundIsExceededByOneMoreThanItAndNotBefore(t *testing.T) {
	share := policy.Share{Jobs: 2, Trials: 100, ArtifactBytes: 10, StoredBytes: 1000}
	for _, c := range []struct {
		name string
		got  *policy.QuotaExceeded
		of   string
	}{
		{"the last job", share.Job("ada", policy.Usage{Jobs: 1, Trials: 40}, 60), ""},
		{"a job too many", share.Job("ada", policy.Usage{Jobs: 2}, 1), "jobs"},
		{"a job of too many trials", share.Job("ada", policy.Usage{Jobs: 1, Trials: 40}, 61), "trials"},
		{"a job beside artifacts at their limit", share.Job("ada", policy.Usage{ArtifactBytes: 10}, 1), "artifacts"},
		{"the last trials", share.MoreTrials("ada", policy.Usage{Trials: 90}, 10), ""},
		{"trials too many", share.MoreTrials("ada", policy.Usage{Trials: 90}, 11), "trials"},
		{"no more trials, at a limit that was lowered", share.MoreTrials("ada", policy.Usage{Trials: 200}, 0), ""},
		{"the last bytes", share.MoreStored("ada", policy.Usage{StoredBytes: 999}, 1), ""},
		{"bytes too many", share.MoreStored("ada", policy.Usage{StoredBytes: 999}, 2), "stored"},
		{"anything without limits", policy.Share{}.Job("ada", policy.Usage{Jobs: 1e6, Trials: 1e6, ArtifactBytes: 1e12}, 1e6), ""},
	} {
		if got := c.got; (got == nil) != (c.of == "") || got != nil && got.Of != c.of {
			t.Errorf("%s exceeds %+v, want %q", c.name, got, c.of)
		}
	}
}
