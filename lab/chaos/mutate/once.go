package mutate

// once mutates promises 1 and 2: no acknowledged data are lost, and work is recorded exactly once.
var once = in("tracker", []mutation{
	{
		name: "a trial that is recorded is recorded again", file: "state/report_measurements.go",
		from: "if i := b.place(m.GetCandidate()); b.recorded[i] == 0 {", to: "if i := b.place(m.GetCandidate()); i >= 0 {",
		test: "TestNoTrialIsLostOrRecordedTwice",
	},
	{
		name: "any lease of a subject stands for the one in force", file: "state/lease.go",
		from: "!proto.Equal(l.token, token)", to: "!proto.Equal(l.token, l.token)",
		test: "TestAReportUnderAStaleLeaseIsRefused",
	},
	{
		name: "a proposal that is repeated makes another batch", file: "state/propose.go",
		from: "case n < j.proposals:", to: "case n+1000 < j.proposals:",
		test: "TestCallsRepeatedAfterTheyTookEffectChangeNothing",
	},
	{
		name: "a report that is repeated is stale", file: "state/report_build.go",
		from: "if !Holds(b.settled, token) {", to: "if b != nil {",
		test: "TestAnAnswerThatIsLostChangesNothing",
	},
	{
		name: "a submission that is repeated makes another job", file: "state/submit.go",
		from: "requestKey: records.RequestKey(s.owner, s.id)", to: "requestKey: records.RequestKey(s.owner, s.id+\"x\")",
		test: "TestCallsRepeatedAfterTheyTookEffectChangeNothing",
	},
	{
		name: "a full disk does not stop the tracker", file: "engine/update.go",
		from: "e.fail(err)", to: "_ = e.fail",
		test: "TestAStoreThatCannotBeWrittenStopsTheTracker",
	},
	{
		name: "watchers hear of what is not on the disk", file: "engine/update.go",
		from: "effects.Write.OnCommitted(func() { e.watches.publish(job, events) })", to: "e.watches.publish(job, events)",
		test: "TestAWatcherIsToldOnlyWhatIsOnTheDisk",
	},
	{
		name: "objects of a batch that waits for a runner may be evicted", file: "state/report_build.go",
		from: "\tc.pin(b)\n", to: "",
		test: "TestEvictionTakesNothingThatALeaseNeeds",
	},
	{
		name: "a report says who measured", file: "state/report_measurements.go",
		from: "m.Device, m.Suspected, m.BuildSeconds = a.name(), \"\", 0", to: "m.Suspected, m.BuildSeconds = \"\", 0",
		test: "TestARunnerSpeaksForItsDeviceOnly",
	},
	{
		name: "a report says when it measured", file: "state/batch.go",
		from: "m.At = c.now()", to: "if m.At == nil {\n\t\tm.At = c.now()\n\t}",
		test: "TestAMeasurementIsDatedByTheTracker",
	},
})
