package mutate

// gentle mutates promise 5: restarts, outages and clocks expire nothing too early.
var gentle = in("tracker", []mutation{
	{
		name: "no grace after a restart", file: "state/expire.go",
		from: "return m.cfg.Clock().Add(m.cfg.Grace) }", to: "return m.cfg.Clock() }",
		test: "TestLeasesOutliveARestartOfTheTracker",
	},
	{
		name: "no patience after the tracker stood still", file: "state/expire.go",
		from: "c.Machine.patientUntil = now.Add(c.cfg.Grace)", to: "c.Machine.patientUntil = now",
		test: "TestATrackerThatStoodStillExpiresNothing",
	},
	{
		name: "the wall's clock expires leases", file: "state/expire.go",
		from: "now := c.cfg.Clock()\n\tif !c.awake(now)", to: "now := c.cfg.Now()\n\tif !c.awake(now)",
		test: "TestTheWallsClockExpiresNothing",
	},
	{
		name: "nobody is waited for when most fall silent", file: "state/outage.go",
		from: "silent >= leastSilent && 2*silent", to: "silent < 0 && 2*silent",
		test: "TestMostAgentsAreWaitedFor",
	},
	{
		name: "a few silent agents are an outage", file: "state/outage.go",
		from: "silent >= leastSilent && 2*silent > len(c.sessions)", to: "silent > 0",
		test: "TestAFewSilentAgentsAreGoneInTime",
	},
	{
		name: "an outage is waited for without end", file: "state/outage.go",
		from: "case now.Before(o.until):", to: "case !o.until.IsZero():",
		test: "TestAnOutageIsWaitedForNoLongerThanItsBound",
	},
	{
		name: "the time of an outage is the job's", file: "state/outage.go",
		from: "return outageOver", to: "return outageNone",
		test: "TestAnOutageIsWaitedForNoLongerThanItsBound",
	},
	{
		name: "what an agent leaves behind counts as failed", file: "state/join.go",
		from: "c.giveBack(w, \"left\")", to: "c.lose(w, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, \"left\")",
		test: "TestLeavingRequeuesAtOnce",
	},
})
