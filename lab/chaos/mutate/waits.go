package mutate

// waits mutates promise 12: waiting is visible, and budgets stop while no agent can work.
var waits = in("tracker", []mutation{
	{
		name: "a lack keeps no job from going on", file: "state/supply.go",
		from: "if reason := s.lacking(j); reason != 0 {", to: "if reason := s.lacking(j); reason != 0 && s.usable > 0 {",
		test: "TestAJobSaysWhyItWaits",
	},
	{
		name: "a cordoned device counts as there", file: "state/supply.go",
		from: "case a.device != nil && a.device.cordon != nil:", to: "case a.device != nil && a.device.cordon != nil && a.unheard:",
		test: "TestAJobSaysWhyItWaits",
	},
	{
		name: "who was not heard since the start counts as there", file: "state/supply.go",
		from: "return a.unheard || now", to: "return now",
		test: "TestAJobSaysWhyItWaits",
	},
	{
		name: "a device in quarantine counts as there", file: "state/supply.go",
		from: "case a.device != nil && a.device.quarantine != nil:", to: "case a.device != nil && a.device.quarantine != nil && a.unheard:",
		test: "TestAJobSaysThatItsDeviceIsInQuarantine",
	},
	{
		name: "an agent that rests from a job counts as there for it", file: "state/supply.go",
		from: "if j != nil && s.coolingDown[j.id] == s.usable {", to: "if j != nil && s.resting[j.id] > s.usable {",
		test: "TestAJobSaysWhenWhatFailedIsTriedAgain",
	},
	{
		name: "nobody hears that work is tried again later", file: "state/wait.go",
		from: "case h.retry != nil:", to: "case h.retry != nil && h.lease != nil:",
		test: "TestAJobSaysWhenWhatFailedIsTriedAgain",
	},
	{
		name: "nobody hears that a quota holds up builds", file: "state/wait.go",
		from: "!m.mayBuild(w.parent().spec.GetOwner()):", to: "!m.mayBuild(\"\"):",
		test: "TestAJobSaysThatItsOwnerHasTooMuchWaitingForDevices",
	},
	{
		name: "nobody hears behind whom a job waits", file: "state/wait_turn.go",
		from: "\tif before != nil {", to: "\tif before == nil {",
		test: "TestAJobSaysBehindWhomItWaits",
	},
	{
		name: "a job waits since now", file: "state/wait.go",
		from: "if j.blocked == reason {", to: "if j.blocked != reason {",
		test: "TestWhoWatchesAJobHearsWhyItWaits",
	},
	{
		name: "who watches hears once why a job waits", file: "services/watch_status.go",
		from: "a.GetReason() == b.GetReason() && a.GetMessage() == b.GetMessage() &&", to: "a.GetReason() != 0 &&",
		test: "TestWhoWatchesAJobHearsWhyItWaits",
	},
	{
		name: "jobs that wait are not counted", file: "state/wait_turn.go",
		from: "counts[reason]++", to: "counts[reason] = 0",
		test: "TestMetricsCountJobsByWhatTheyWaitFor",
	},
	{
		name: "whether a device is there is not said beforehand", file: "services/check_farm.go",
		from: "&tilthv1.RunSpec{Device: req.GetDevice()}", to: "&tilthv1.RunSpec{}",
		test: "TestTheFarmSaysBeforehandWhatAJobWouldWaitFor",
	},
	{
		name: "a budget's time runs while nothing can run", file: "state/budget_time.go",
		from: "_, reason := m.blocked(known, j)\n\treturn reason == 0", to: "_, _ = m.blocked(known, j)\n\treturn true",
		test: "TestNoBudgetRunsWhileNothingCanRun",
	},
	{
		name: "a budget's time runs while its tuner is silent", file: "state/budget_time.go",
		from: "|| m.isSilent(j.lease.agent, m.cfg.Clock()) {", to: "{",
		test: "TestATunerThatIsSilentSpendsNoTime",
	},
	{
		name: "time in which the tracker stood still is the job's", file: "state/budget_time.go",
		from: "j.spent += min(max(j.counted.Sub(since), 0), mostCounted)", to: "j.spent += max(j.counted.Sub(since), 0)",
		test: "TestATrackerThatStoodStillSpendsNobodysTime",
	},
	{
		name: "a budget's time is never over", file: "state/budget_time.go",
		from: "case left <= 0:", to: "case left <= -1<<40:",
		test: "TestTheTimeOfABudgetEndsTheJobThatMeasured",
	},
	{
		name: "a tuner is told of all of a budget's time", file: "state/budget_time.go",
		from: "work.TimeLeft = durationpb.New(max(left, 0))", to: "work.TimeLeft = durationpb.New(max(left, j.spec.GetBudget().GetTime().AsDuration()))",
		test: "TestATunerIsToldWhatIsLeft",
	},
	{
		name: "a job of which nothing came is done", file: "state/budget_time.go",
		from: "c.end(j, tilthv1.JobState_JOB_STATE_FAILED, reason)", to: "c.end(j, tilthv1.JobState_JOB_STATE_DONE, reason)",
		test: "TestABudgetOfTimeDoesNotRunWhileTheTrackerIsAway",
	},
})
