package mutate

// bounded mutates promise 8: everything stored or queued is bounded.
var bounded = in("tracker", []mutation{
	{
		name: "any number of calls waits for the disk", file: "engine/update.go",
		from: "n > int64(e.cfg.Calls)", to: "n > 1<<62",
		test: "TestCallsThatWaitForTheDiskAreBounded",
	},
	{
		name: "any number of jobs is open", file: "state/limits.go",
		from: "if len(m.jobs) >= m.cfg.Limits.Jobs {", to: "if len(m.jobs) >= 1000*m.cfg.Limits.Jobs {",
		test: "TestMemoryIsBoundedUnderOverload",
	},
	{
		name: "any number of batches of a job is under way", file: "state/limits.go",
		from: "if len(j.batches) >= l.JobBatches {", to: "if len(j.batches) >= 1000*l.JobBatches {",
		test: "TestAJobsBatchesAreBounded",
	},
	{
		name: "specifications take any number of bytes", file: "state/limits.go",
		from: "if m.load.specBytes+bytes > m.cfg.Limits.SpecBytes {", to: "if m.load.specBytes+bytes > 1000*m.cfg.Limits.SpecBytes {",
		test: "TestSpecificationsAreBounded",
	},
	{
		name: "any number of agents joins", file: "state/limits.go",
		from: "len(m.sessions) >= l.Agents:", to: "len(m.sessions) >= 1000*l.Agents:",
		test: "TestMemoryIsBoundedUnderOverload",
	},
	{
		name: "an agent waits for work any number of times", file: "state/limits.go",
		from: "if len(a.waiters) >= m.cfg.Limits.AgentWaits {", to: "if len(a.waiters) >= 1000*m.cfg.Limits.AgentWaits {",
		test: "TestMemoryIsBoundedUnderOverload",
	},
})
