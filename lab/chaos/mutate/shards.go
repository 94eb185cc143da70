package mutate

import "slices"

// shards mutates the promises on trackers that share a database.
var shards = slices.Concat(
	in("internal/agent", []mutation{
		{
			name: "shards take turns whoever waits in them", file: "shards_lease.go",
			from: "if of.weight <= 0 {", to: "if of.weight >= 0 {",
			test: "TestShardsTakeTurnsByTheWeightsOfWhoWaits",
		},
		{
			name: "shards take turns however long their leases take", file: "shards_lease.go",
			from: "seconds := took.Seconds()", to: "seconds := took.Seconds()/took.Seconds()",
			test: "TestShardsTakeTurnsByTheWeightsOfWhoWaits",
		},
		{
			name: "a wait at a shard is cancelled, though a lease may be on its way", file: "shards_await.go",
			from: "if w.endAt(call, shard) != nil {", to: "if w.endAt(call, shard) == nil {",
			test: "TestWorkThatComesWhileAWaitIsEndedIsHandedBack",
		},
		{
			name: "a shard that does not answer delays the heartbeats of the others", file: "session.go",
			from: "max(0, s.interval-time.Since(began))", to: "s.interval+0*time.Since(began)",
			test: "TestAShardThatDoesNotAnswerDelaysNoHeartbeatOfTheOthers",
		},
	}),
	in("internal/farm", []mutation{
		{
			name: "a tracker drops its shards when another is of a later version", file: "shards.go",
			from: "errors.Is(err, records.ErrVersion) && s.host.Held() > 0", to: "errors.Is(err, records.ErrVersion) && s.host.Held() < 0",
			test: "TestATrackerKeepsItsShardsWhenAnotherIsOfALaterVersion",
		},
		{
			name: "a tracker that does not know who else is there gives shards up", file: "shards.go",
			from: "if err != nil || s.host.Held() <= s.share() {", to: "if s.host.Held() <= s.share() {",
			test: "TestATrackerThatMeetsNobodyGivesNoShardUp",
		},
	}),
	[]mutation{
		{
			name: "a call that changes nothing is answered by who lost the shard", pkg: "./tracker", file: "tracker/services/services.go",
			from: "\t\tc.Confirm()\n", to: "",
			test: "TestATrackerThatLostItsDatabaseConfirmsNothing",
		},
		{
			name: "what is told of a device is told one shard", pkg: "./tracker", file: "internal/agent/shards.go",
			from: "c.invoke(toShard(ctx, shard), request(shard), replies[shard])", to: "c.invoke(toShard(ctx, 0), request(shard), replies[shard])",
			test: "TestWhatIsToldOfADeviceHoldsInAllShards",
		},
		{
			name: "an upload to all shards ends with the first that has it", pkg: "./tracker", file: "internal/agent/shards_stream.go",
			from: "if ended == len(s.to) {", to: "if ended > 0 {",
			test: "TestWhatOneShardHasIsUploadedToTheOthers",
		},
		{
			name: "a tracker of shards ends when one cannot be taken over", pkg: "./tracker", file: "internal/farm/shards.go",
			from: "case !isTransient(err, s.began.Load(), true):", to: "case s.began.Load() || !isTransient(err, s.began.Load(), true):",
			test: "TestATrackerOfShardsOutlivesADatabaseThatRefusesIt",
		},
		{
			name: "a shard takes jobs of all owners", pkg: "./tracker", file: "tracker/services/shard.go",
			from: "of != s.Index", to: "of < 0",
			test: "TestAnOwnerHasOneShard",
		},
		{
			name: "a tuner keeps its job while those of another shard wait", pkg: "./tracker", file: "tracker/state/shard.go",
			from: "if l.agent.wanted && ", to: "if l.agent.gone && ",
			test: "TestATunerWhoseTurnIsOverGoesToAnotherShard",
		},
		{
			name: "work that waits in a shard is not told", pkg: "./tracker", file: "tracker/state/shard.go",
			from: "q != nil && q.work.Len() > 0", to: "q != nil && q.work.Len() < 0",
			test: "TestATunerWhoseTurnIsOverGoesToAnotherShard",
		},
		{
			name: "a call that is passed on does not say who asks", pkg: "./tracker", file: "internal/access/authorisation/http.go",
			from: `return "Bearer " + by.token, nil`, to: `return "", nil`,
			test: "TestPagesAndCallsInJSONReachTheShardOfWhoAsks",
		},
		{
			name: "a page tells one shard of a device what all are to hear", pkg: "./tracker", file: "tracker/host_pages.go",
			from: "if shard == allShards {", to: "if shard == anyShard {",
			test: "TestWhatIsToldOfADeviceHoldsInAllShards",
		},
		{
			name: "jobs lose their shards when a database is divided", pkg: "./records/registry", file: "records/postgres/shards.go",
			from: `" SET shard = "+shardOfID+" WHERE`, to: `" SET shard = 0 WHERE`,
			test: "TestADatabaseOfSeveralShardsIsConvertedBothWays",
		},
	},
)
