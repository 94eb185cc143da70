package chaos

import (
	"testing"

	"github.com/anishathalye/porcupine"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func lease(n uint32, session string, call, end int64) porcupine.Operation {
	return porcupine.Operation{Input: act{token: token(n, session), grant: true}, Output: accepted, Call: call, Return: end}
}

func report(n uint32, session string, last bool, o outcome, call, end int64) porcupine.Operation {
	return porcupine.Operation{Input: act{token: token(n, session), last: last}, Output: o, Call: call, Return: end}
}

func token(n uint32, session string) *tilthv1.LeaseToken {
	return &tilthv1.LeaseToken{Session: session, Subject: "batch", Attempt: n}
}

func TestLeasesAreExclusive(t *testing.T) {
	for name, c := range map[string]struct {
		history []porcupine.Operation
		legal   bool
	}{
		"reported once":                   {[]porcupine.Operation{lease(1, "a", 1, 2), report(1, "a", true, accepted, 3, 4)}, true},
		"reported twice":                  {[]porcupine.Operation{lease(1, "a", 1, 2), report(1, "a", true, accepted, 3, 4), report(1, "a", true, accepted, 5, 6)}, true},
		"repeated under the next lease":   {[]porcupine.Operation{lease(1, "a", 1, 2), report(1, "a", true, notKnown, 3, never), lease(2, "b", 5, 6), report(1, "a", true, accepted, 7, 8)}, true},
		"refused under the next lease":    {[]porcupine.Operation{lease(1, "a", 1, 2), report(1, "a", true, notKnown, 3, never), lease(2, "b", 5, 6), report(1, "a", true, refusedStale, 7, 8)}, true},
		"accepted under the next lease":   {[]porcupine.Operation{lease(1, "a", 1, 2), lease(2, "b", 3, 4), report(1, "a", true, accepted, 5, 6)}, false},
		"accepted beside the next lease":  {[]porcupine.Operation{lease(1, "a", 1, 2), lease(2, "b", 3, 6), report(1, "a", true, accepted, 4, 5)}, true},
		"one lease to two":                {[]porcupine.Operation{lease(1, "a", 1, 2), lease(1, "b", 3, 4)}, false},
		"accepted, then refused":          {[]porcupine.Operation{lease(1, "a", 1, 2), report(1, "a", true, accepted, 3, 4), report(1, "a", true, refusedStale, 5, 6)}, false},
		"refused, then accepted":          {[]porcupine.Operation{lease(1, "a", 1, 2), report(1, "a", true, refusedStale, 3, 4), report(1, "a", true, accepted, 5, 6)}, false},
		"a part accepted, then refused":   {[]porcupine.Operation{lease(1, "a", 1, 2), report(1, "a", false, accepted, 3, 4), report(1, "a", false, refusedStale, 5, 6)}, true},
		"of another session":              {[]porcupine.Operation{lease(1, "a", 1, 2), report(1, "b", true, accepted, 3, 4)}, false},
		"a lease that nobody heard of":    {[]porcupine.Operation{report(1, "a", true, accepted, 3, 4)}, false},
		"attempts that got lost between":  {[]porcupine.Operation{lease(1, "a", 1, 2), lease(5, "b", 3, 4), report(5, "b", true, accepted, 5, 6)}, true},
		"the last of two that both ended": {[]porcupine.Operation{lease(1, "a", 1, 2), report(1, "a", true, accepted, 3, 4), lease(2, "b", 5, 6), report(2, "b", true, accepted, 7, 8), report(1, "a", true, accepted, 9, 10)}, true},
	} {
		if got := porcupine.CheckOperations(leaseModel, c.history); got != c.legal {
			t.Errorf("%s: legal is %v", name, got)
		}
	}
}
