package mutate

// kept mutates promise 7 on the ownership and lifetime of requests and ended jobs.
var kept = []mutation{
	{
		name: "a request of one owner answers another's", file: "records/requests.go",
		from: "return fmt.Appendf(nil, \"\\x00%s\\x00%s\", owner, requestID)", to: "return fmt.Appendf(nil, \"\\x00%s\\x00%s\", owner[:0], requestID)",
		pkg: "./tracker", test: "TestARequestIsItsOwners",
	},
	{
		name: "a request in an old file is everybody's", file: "records/bolt/requests.go",
		from: "if err == nil && whose.Name == owner {", to: "if err == nil && whose.Name != \"\\x00\" {",
		pkg: "./tracker", test: "TestARequestInAnOldFileIsItsOwners",
	},
	{
		name: "any number of ended jobs is kept", file: "tracker/policy/retention_keep.go",
		from: "own.Len() > r.Jobs {", to: "own.Len() > 1000*r.Jobs {",
		pkg: "./tracker", test: "TestEndedJobsAreKeptInNumbersAndTheRestIsSaid",
	},
	{
		name: "nobody hears of jobs that are no longer there", file: "tracker/state/delete.go",
		from: "return m.nextJob - min(there, m.nextJob)", to: "return 0 * min(there, m.nextJob)",
		pkg: "./tracker", test: "TestEndedJobsAreKeptInNumbersAndTheRestIsSaid",
	},
	{
		name: "ended jobs are kept for ever", file: "tracker/policy/retention_keep.go",
		from: "now.Sub(front.Value.(*RetainedJob).Ended) > r.Age:", to: "now.Sub(front.Value.(*Job).Ended) > 1000*r.Age:",
		pkg: "./tracker", test: "TestEndedJobsAreKeptForATime",
	},
	{
		name: "an owner's ended jobs take any number of bytes", file: "tracker/policy/retention_keep.go",
		from: "room >= 0 && own.bytes > room {", to: "room >= 0 && own.bytes > 1000*(room+own.bytes) {",
		pkg: "./tracker", test: "TestAnOwnerHasNoMoreStoredThanItMay",
	},
	{
		name: "a job is deleted while it runs", file: "tracker/state/delete.go",
		from: "if c.jobs[id] != nil {", to: "if c.jobs[id] != nil && c.archive.Job(id) != nil {",
		pkg: "./tracker", test: "TestAJobIsDeletedWithItsEventsAndWithoutItsRecords",
	},
	{
		name: "a deleted job answers its request", file: "records/bolt/ended.go",
		from: "err == nil && len(row.GetRequestKey()) > 0 {", to: "err == nil && len(row.GetRequestKey()) == 0 {",
		pkg: "./tracker", test: "TestAJobIsDeletedWithItsEventsAndWithoutItsRecords",
	},
	{
		name: "anybody deletes anybody's job", file: "internal/access/authorisation/rules.go",
		from: "tilthv1.JobService_DeleteJob_FullMethodName:        {roles: clients, own: ownJob,", to: "tilthv1.JobService_DeleteJob_FullMethodName:        {roles: clients,",
		pkg: "./tracker", test: "TestAJobBelongsToWhoSubmittedIt",
	},
	{
		name: "a job that has ended is nobody's", file: "tracker/security.go",
		from: "owner, err = h.Store().JobOwner(id)", to: "owner, err = h.Store().JobOwner(id + \"x\")",
		pkg: "./tracker", test: "TestAJobBelongsToWhoSubmittedIt",
	},
}
