package mutate

import "slices"

// fair mutates promise 7 on shares and quotas.
var fair = slices.Concat(
	in("tracker", []mutation{
		{
			name: "an owner has any number of jobs", file: "policy/quota_exceeded.go",
			from: "case s.Jobs > 0 && has.Jobs >= s.Jobs:", to: "case s.Jobs > 0 && has.Jobs > 1000+s.Jobs:",
			test: "TestAnOwnerHasNoMoreJobsThanItMay",
		},
		{
			name: "an owner's jobs come to any number of trials", file: "policy/quota_exceeded.go",
			from: "case s.Trials > 0 && has.Trials+trials > s.Trials:", to: "case s.Trials > 0 && has.Trials+trials > 1000*s.Trials:",
			test: "TestAnOwnersJobsComeToNoMoreTrialsThanTheyMay",
		},
		{
			name: "jobs without a budget of trials propose any number", file: "policy/quota_exceeded.go",
			from: "has.Trials+more > s.Trials {", to: "has.Trials+more > 1000*s.Trials {",
			test: "TestAnOwnersJobsComeToNoMoreTrialsThanTheyMay",
		},
		{
			name: "builds do not wait for their owner's artifacts to be measured", file: "state/dispatch.go",
			from: "allowed.Owner = m.mayBuild", to: "_ = m.mayBuild",
			test: "TestAnOwnersArtifactsHoldUpItsBuildsAlone",
		},
		{
			name: "an ended turn does not go to the job that waits", file: "state/turn.go",
			from: "now.Sub(l.granted) < c.cfg.SearchTurn", to: "now.Sub(l.granted) < 1000*c.cfg.SearchTurn",
			test: "TestTunersAreSharedByTurns",
		},
	}),
	in("tracker/policy", []mutation{
		{
			name: "weights do not count", file: "fairqueue_level.go",
			from: "n.tag += seconds / n.weight", to: "n.tag += seconds",
			test: "TestSharesFollowWeights",
		},
		{
			name: "who was idle has saved up turns", file: "fairqueue_level.go",
			from: "n.tag = max(n.tag, l.virtual)", to: "n.tag = max(n.tag, 0)",
			test: "TestIdlenessEarnsNothing",
		},
		{
			name: "nobody pays for what was served", file: "fairqueue_charge.go",
			from: "c.pay(seconds - c.paid)", to: "c.pay(0)",
			test: "TestAHugeJobDoesNotStarveASmallOne",
		},
	}),
)
