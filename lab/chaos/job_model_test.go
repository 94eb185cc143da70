package chaos

import (
	"testing"

	"github.com/anishathalye/porcupine"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	done      = tilthv1.JobState_JOB_STATE_DONE
	cancelled = tilthv1.JobState_JOB_STATE_CANCELLED
)

func answered(what string, state tilthv1.JobState, call, end int64) porcupine.Operation {
	return porcupine.Operation{Input: request{what, state, true}, Call: call, Return: end}
}

func unanswered(what string, call int64) porcupine.Operation {
	return porcupine.Operation{Input: request{what, absent, false}, Call: call, Return: never}
}

func TestJobsAreLinearizable(t *testing.T) {
	submitted := answered("submit", absent, 1, 2)
	for name, c := range map[string]struct {
		history []porcupine.Operation
		legal   bool
	}{
		"paused and resumed":               {[]porcupine.Operation{submitted, answered("pause", absent, 3, 4), answered("read", resting, 5, 6), answered("resume", absent, 7, 8), answered("read", under, 9, 10)}, true},
		"resumed, and paused still":        {[]porcupine.Operation{submitted, answered("pause", absent, 3, 4), answered("resume", absent, 5, 6), answered("read", resting, 7, 8)}, false},
		"paused without effect":            {[]porcupine.Operation{submitted, answered("pause", absent, 3, 4), answered("read", under, 5, 6)}, false},
		"a pause that came late":           {[]porcupine.Operation{submitted, unanswered("pause", 3), answered("read", under, 5, 6), answered("read", resting, 7, 8)}, true},
		"a pause that nobody asked for":    {[]porcupine.Operation{submitted, answered("read", resting, 3, 4)}, false},
		"read before it was there":         {[]porcupine.Operation{answered("read", under, 1, 2), answered("submit", absent, 3, 4)}, false},
		"cancelled, and under way":         {[]porcupine.Operation{submitted, answered("cancel", absent, 3, 4), answered("read", under, 5, 6)}, false},
		"cancelled when it had failed":     {[]porcupine.Operation{submitted, answered("read", failed, 3, 4), answered("cancel", absent, 5, 6), answered("read", failed, 7, 8)}, true},
		"failed by itself, then under way": {[]porcupine.Operation{submitted, answered("read", failed, 3, 4), answered("read", under, 5, 6)}, false},
		"done, and done again":             {[]porcupine.Operation{submitted, answered("finish", done, 3, 4), answered("finish", done, 5, 6), answered("read", done, 7, 8)}, true},
		"done after it was cancelled":      {[]porcupine.Operation{submitted, answered("cancel", absent, 3, 4), answered("finish", done, 5, 6)}, false},
		"done though nobody finished it":   {[]porcupine.Operation{submitted, answered("read", done, 3, 4)}, false},
		"cancelled beside a read of it":    {[]porcupine.Operation{submitted, answered("cancel", absent, 3, 8), answered("read", cancelled, 4, 5), answered("read", cancelled, 6, 7)}, true},
		"cancelled, then read, then not":   {[]porcupine.Operation{submitted, unanswered("cancel", 3), answered("read", cancelled, 4, 5), answered("read", under, 6, 7)}, false},
		"not there before it was":          {[]porcupine.Operation{answered("missing", absent, 1, 2), answered("submit", absent, 3, 4), answered("read", under, 5, 6)}, true},
		"not there though acknowledged":    {[]porcupine.Operation{submitted, answered("missing", absent, 3, 4)}, false},
		"ended by itself":                  {[]porcupine.Operation{submitted, answered("ended", absent, 3, 4), answered("read", failed, 5, 6)}, true},
		"ended, and under way":             {[]porcupine.Operation{submitted, answered("ended", absent, 3, 4), answered("read", under, 5, 6)}, false},
		"submitted twice":                  {[]porcupine.Operation{submitted, answered("pause", absent, 3, 4), answered("submit", absent, 5, 6), answered("read", resting, 7, 8)}, true},
	} {
		if got := porcupine.CheckOperations(jobModel, c.history); got != c.legal {
			t.Errorf("%s: legal is %v", name, got)
		}
	}
}

func TestCheckerSeesATrackerThatWritesAfterItsEpoch(t *testing.T) {
	good := []fence{{1, 0, 1, "a"}, {2, 1, 1, "a"}, {3, 0, 1, "a"}, {4, 0, 2, "b"}, {5, 0, 2, "b"}}
	for name, c := range map[string]struct {
		fences  []fence
		changes []change
		broken  int
	}{
		"as it is to be":                    {good, []change{{1, 0, "jobs"}, {2, 1, "jobs"}, {5, 0, "events"}}, 0},
		"in an epoch that is over":          {append(good[:5:5], fence{6, 0, 1, "a"}), nil, 1},
		"in another tracker's epoch":        {append(good[:5:5], fence{6, 0, 2, "a"}), nil, 1},
		"without an epoch":                  {good, []change{{9, 0, "jobs"}}, 1},
		"in an epoch of another shard":      {good, []change{{1, 1, "jobs"}}, 1},
		"epochs of shards are not compared": {append(good[:5:5], fence{6, 1, 1, "a"}), nil, 0},
	} {
		if got := judgeFences(c.fences, c.changes); len(got) != c.broken {
			t.Errorf("%s: %v", name, got)
		}
	}
}
