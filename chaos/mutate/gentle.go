package main

// gentle are mutations of promise 5: restarts, outages and clocks expire nothing too early.
var gentle = in("tracker", []mutation{
	{
		name: "no grace after a restart", file: "expire.go",
		from: "return t.cfg.Clock().Add(t.cfg.Grace) }", to: "return t.cfg.Clock() }",
		test: "TestLeasesOutliveARestartOfTheTracker",
	},
	{
		name: "no patience after the tracker stood still", file: "expire.go",
		from: "c.Tracker.patientUntil = now.Add(c.cfg.Grace)", to: "c.Tracker.patientUntil = now",
		test: "TestATrackerThatStoodStillExpiresNothing",
	},
	{
		name: "the wall's clock expires leases", file: "expire.go",
		from: "now := c.cfg.Clock()\n\t\tif !c.awake(now)", to: "now := c.cfg.Now()\n\t\tif !c.awake(now)",
		test: "TestTheWallsClockExpiresNothing",
	},
	{
		name: "nobody is waited for when most fall silent", file: "outage.go",
		from: "silent >= leastSilent && 2*silent", to: "silent < 0 && 2*silent",
		test: "TestMostAgentsAreWaitedFor",
	},
	{
		name: "a few silent agents are an outage", file: "outage.go",
		from: "silent >= leastSilent && 2*silent > len(c.sessions)", to: "silent > 0",
		test: "TestAFewSilentAgentsAreGoneInTime",
	},
	{
		name: "an outage is waited for without end", file: "outage.go",
		from: "case now.Before(o.until):", to: "case !o.until.IsZero():",
		test: "TestAnOutageIsWaitedForNoLongerThanItsBound",
	},
	{
		name: "the time of an outage is the job's", file: "outage.go",
		from: "return outageOver", to: "return outageNone",
		test: "TestAnOutageIsWaitedForNoLongerThanItsBound",
	},
	{
		name: "what an agent leaves behind counts as failed", file: "return_lease.go",
		from: "c.giveBack(w, \"left\")", to: "c.lose(w, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, \"left\")",
		test: "TestLeavingRequeuesAtOnce",
	},
})
