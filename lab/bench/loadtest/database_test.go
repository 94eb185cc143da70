package loadtest

import (
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
)

// TestTrackersSideBySideLoseNothing kills one of two trackers, whose shards the other one takes.
func TestTrackersSideBySideLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: kills a tracker, and waits until another one has its shards")
	}
	t.Parallel() // mostly waits until the shards are distributed
	o := small(t)
	_, o.Store = pgserver.ForTest(t)
	o.Trackers, o.Shards, o.Records = 2, 4, 1000
	o.Devices, o.Jobs, o.Time, o.Tuners, o.Builders = 40, 8, 6*time.Second, 4, 3
	o.Failures = Failures{Build: 0.1, Crash: 0.1, Infra: 0.05, LostAnswers: 0.02, Kills: 1}
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if d.Lost != 0 || d.Duplicated != 0 || d.Kills != 1 || d.Shards != 4 || len(d.Trackers) != 2 {
		t.Errorf("%+v", d)
	}
	if d.Database == nil || !(d.Database.Transactions > 0) || !(d.Database.CPUSeconds > 0) {
		t.Errorf("the database: %+v", d.Database)
	}
	through := 0.0
	for i, tracker := range d.Trackers {
		if tracker.RSSBytes == 0 {
			t.Errorf("tracker %d: %+v", i, tracker)
		}
		through += tracker.ResultsPerSecond
	}
	if diff := through - d.ResultsPerSecond; !(through > 0) || diff > 1e-6 || diff < -1e-6 {
		t.Errorf("%v results a second come through the trackers, of %v", through, d.ResultsPerSecond)
	}

	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "a tracker has used it: make a new one (createdb)") {
		t.Errorf("a database that was used: %v", err)
	}
}

// TestOneTrackerServesADatabase runs without shards, like most farms.
func TestOneTrackerServesADatabase(t *testing.T) {
	o := small(t)
	_, o.Store = pgserver.ForTest(t)
	o.Time = time.Second
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if d.Lost != 0 || d.Duplicated != 0 || d.Results == 0 || len(d.Trackers) != 1 || d.FsyncsPerSecond != 0 {
		t.Errorf("%+v", d)
	}
}

func TestOwnersAreSharedOutEvenly(t *testing.T) {
	for _, shards := range []int{1, 3, 16} {
		all := owners(shards)
		if len(all) != shards*ownersOfShard {
			t.Fatalf("%d owners of %d shards", len(all), shards)
		}
		for i, owner := range all {
			if got := wire.ShardOfOwner(owner, shards); got != i%shards {
				t.Errorf("owner %d of %d shards, %s, is in shard %d", i, shards, owner, got)
			}
		}
	}
}
