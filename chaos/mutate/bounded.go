package main

// bounded are mutations of promise 8: whatever is kept or waits has a bound.
var bounded = in("tracker", []mutation{
	{
		name: "any number of calls waits for the disk", file: "change.go",
		from: "n > int64(t.cfg.Limits.Calls)", to: "n > 1<<62",
		test: "TestCallsThatWaitForTheDiskAreBounded",
	},
	{
		name: "any number of jobs is open", file: "limits.go",
		from: "case len(t.jobs) >= l.Jobs:", to: "case len(t.jobs) >= 1000*l.Jobs:",
		test: "TestMemoryIsBoundedUnderOverload",
	},
	{
		name: "any number of batches of a job is under way", file: "limits.go",
		from: "if len(j.batches) >= l.JobBatches {", to: "if len(j.batches) >= 1000*l.JobBatches {",
		test: "TestAJobsBatchesAreBounded",
	},
	{
		name: "specifications take any number of bytes", file: "limits.go",
		from: "case t.load.specBytes+specBytes > l.SpecBytes:", to: "case t.load.specBytes+specBytes > 1000*l.SpecBytes:",
		test: "TestSpecificationsAreBounded",
	},
	{
		name: "any number of agents joins", file: "limits.go",
		from: "len(t.sessions) >= l.Agents:", to: "len(t.sessions) >= 1000*l.Agents:",
		test: "TestMemoryIsBoundedUnderOverload",
	},
	{
		name: "an agent waits for work any number of times", file: "limits.go",
		from: "if len(a.waiters) >= t.cfg.Limits.AgentWaits {", to: "if len(a.waiters) >= 1000*t.cfg.Limits.AgentWaits {",
		test: "TestMemoryIsBoundedUnderOverload",
	},
})
