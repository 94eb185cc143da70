package quota_test

import (
	"testing"

	"github.com/tilth-dev/tilth/tracker/policy/quota"
)

func TestAnOwnersShareHasTheDefaultsForWhatItLeavesOut(t *testing.T) {
	shares := quota.Shares{
		Default: quota.Share{Jobs: 3, Trials: 100},
		Owners:  map[string]quota.Share{"ada": {Weight: 2, Trials: 500}},
	}
	for owner, want := range map[string]quota.Share{
		"ada": {Weight: 2, Jobs: 3, Trials: 500},
		"bob": {Weight: 1, Jobs: 3, Trials: 100},
	} {
		if got := shares.Of(owner); got != want {
			t.Errorf("%s may have %+v, want %+v", owner, got, want)
		}
	}
}

func TestABoundIsExceededByOneMoreThanItAndNotBefore(t *testing.T) {
	share := quota.Share{Jobs: 2, Trials: 100, ArtifactBytes: 10, StoredBytes: 1000}
	for _, c := range []struct {
		name string
		got  *quota.Exceeded
		of   string
	}{
		{"the last job", share.Job("ada", quota.Usage{Jobs: 1, Trials: 40}, 60), ""},
		{"a job too many", share.Job("ada", quota.Usage{Jobs: 2}, 1), "jobs"},
		{"a job of too many trials", share.Job("ada", quota.Usage{Jobs: 1, Trials: 40}, 61), "trials"},
		{"a job beside artifacts at their limit", share.Job("ada", quota.Usage{ArtifactBytes: 10}, 1), "artifacts"},
		{"the last trials", share.MoreTrials("ada", quota.Usage{Trials: 90}, 10), ""},
		{"trials too many", share.MoreTrials("ada", quota.Usage{Trials: 90}, 11), "trials"},
		{"no more trials, at a limit that was lowered", share.MoreTrials("ada", quota.Usage{Trials: 200}, 0), ""},
		{"the last bytes", share.MoreStored("ada", quota.Usage{StoredBytes: 999}, 1), ""},
		{"bytes too many", share.MoreStored("ada", quota.Usage{StoredBytes: 999}, 2), "stored"},
		{"anything without limits", quota.Share{}.Job("ada", quota.Usage{Jobs: 1e6, Trials: 1e6, ArtifactBytes: 1e12}, 1e6), ""},
	} {
		if got := c.got; (got == nil) != (c.of == "") || got != nil && got.Of != c.of {
			t.Errorf("%s exceeds %+v, want %q", c.name, got, c.of)
		}
	}
}
