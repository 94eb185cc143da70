package mutate

// database mutates promises 1 and 2 on records in a database.
var database = in("records/postgres", []mutation{
	{
		name: "a transaction does not look at the epoch", file: "tracker.go",
		from: "done.RowsAffected() != 1", to: "done.RowsAffected() > 1",
		test: "TestAnEpochThatIsOverWritesNothing",
	},
	{
		name: "a tracker that is silent keeps its database", file: "await.go",
		from: "return w.beats > 0 && w.silent >= silentLooks", to: "return w.beats > 0 && w.silent < 0",
		test: "TestASilentTrackerLosesItsDatabaseToTheOneThatWaits",
	},
	{
		name: "heartbeats are not looked at", file: "await.go",
		from: "w.epoch != before.epoch || w.beats != before.beats", to: "w.epoch != before.epoch",
		test: "TestATrackerWithASlowTransactionKeepsItsDatabase",
	},
	{
		name: "a lock that nobody holds for a moment is taken from a tracker that lives", file: "await.go",
		from: "freeLooks = 4", to: "freeLooks = 0",
		test: "TestATrackerWhoseSessionEndsKeepsItsDatabase",
	},
	{
		name: "a commit whose answer is lost is made again", file: "writer.go",
		from: "if db.transaction == number {", to: "if db.transaction > number {",
		test: "TestACommitWhoseAnswerIsLostIsStoredOnce",
	},
	{
		name: "a write of a server that crashed is given up", file: "writer.go",
		from: "\tif !isTransient(err) {", to: "\tif !isTransient(err) || db.transaction > 0 {",
		test: "TestAServerThatCrashesLosesNothingThatWasAcknowledged",
	},
	{
		name: "transactions that are lost are not missed", file: "tracker.go",
		from: "last != db.transaction && last != db.transaction+1", to: "last < 0",
		test: "TestADatabaseThatLostTransactionsIsNotWritten",
	},
	{
		name: "a commit counts though the server gave up waiting for its standby", file: "session.go",
		from: "\tif n := s.unconfirmed.Load(); n != nil {", to: "\tif n := s.unconfirmed.Load(); n != nil && s.server == nil {",
		test: "TestACommitThatTheStandbyLacksIsNotAcknowledged",
	},
	{
		name: "a transaction looks at another shard's epoch", file: "tracker.go",
		from: "WHERE epoch = $2 AND shard = $3\", number, db.epoch, db.shard)", to: "WHERE $2 > 0 AND shard = $3\", number, db.epoch, db.shard)",
		test: "TestAShardThatIsTakenOverWritesNothing",
	},
	{
		name: "what changes nothing is confirmed by who lost the shard", file: "writer.go",
		from: " && !c.write.Confirms()", to: "",
		test: "TestAShardThatIsTakenOverConfirmsNothing",
	},
	{
		name: "what a shard remembers of the records that all change", file: "common.go",
		from: "\tclear(t.groups.known)\n\tt.groups.last = 0", to: "\tt.groups.last = 0",
		test: "TestAShardLearnsOfTheBestThatAnotherFound",
	},
	{
		name: "what became of a commit is asked without waiting for the standby", file: "tracker.go",
		from: "transaction FROM tracker WHERE shard = $1 FOR UPDATE", to: "transaction FROM tracker WHERE shard = $1",
		test: "TestACommitThatTheStandbyLacksIsNotAcknowledged",
	},
	{
		name: "a primary that was replaced is written again", file: "session.go",
		from: "s.timeline > 0 && s.timeline < db.timeline", to: "s.timeline > 0 && s.timeline < 0",
		test: "TestAStoreGoesOnWithThePromotedStandby",
	},
	{
		name: "look-ups stay with the server that was replaced", file: "tracker.go",
		from: "before != s.server && db.pool != nil", to: "before == s.server && db.pool != nil",
		test: "TestLookUpsLeaveTheServerThatWasReplaced",
	},
	{
		name: "a tracker uses a schema that is not for its version", file: "migrate.go",
		from: "if s.usableBy <= own {", to: "if s.usableBy <= own+1 {",
		test: "TestATakeoverOfASchemaThatThisVersionMayNotUseIsRefused",
	},
	{
		name: "a migration waits for a table in front of those who serve", file: "migrate.go",
		from: "[]string{limits, m.sql,", to: "[]string{limits[:0], m.sql,",
		test: "TestAMigrationBesideALongTransactionHoldsUpNobody",
	},
	{
		name: "members wait for a server that does not answer", file: "members.go",
		from: "m.at = (m.at + 1) % len(m.servers)", to: "m.at %= len(m.servers)",
		test: "TestMembersMeetWhereAServerIsSilent",
	},
	{
		name: "of two primaries the first is opened", file: "session.go",
		from: "s.timeline > best.timeline", to: "s.timeline < best.timeline",
		test: "TestOfTwoPrimariesTheOneThatWasPromotedIsOpened",
	},
})

// converted mutates promise 1 on conversions between stores.
var converted = []mutation{
	{
		name: "a tracker opens a database with a part of a conversion", file: "records/postgres/convert.go",
		from: "mark != nil && !mark.GetFinished()", to: "mark != nil && !mark.GetFinished() && mark.GetSource() == \"\"",
		pkg: "./records/registry", test: "TestNoTrackerOpensAPartOfAConversion",
	},
	{
		name: "a tracker that stands by ends when it cannot take over", file: "internal/farm/single.go",
		from: "case isTransient(err, s.began, store == nil):", to: "case !s.began && isTransient(err, s.began, store == nil):",
		pkg: "./tracker", test: "TestATrackerThatStandsByOutlivesADatabaseThatRefusesIt",
	},
	{
		name: "a conversion that goes on copies rows again", file: "records/convert.go",
		from: "after = c.mark.GetKey()", to: "after = nil",
		pkg: "./records/registry", test: "TestAConversionThatIsKilledGoesOn",
	},
	{
		name: "a row that differs ends no conversion", file: "records/convert.go",
		from: "case !bytes.Equal(want.Value, got.Value):", to: "case len(want.Value) > 0 && len(got.Value) == 0:",
		pkg: "./records/registry", test: "TestATargetThatDiffersIsFound",
	},
}
