package mutate

// faults mutates promise 3 on the attribution of failures and its consequences.
var faults = in("tracker", []mutation{
	{
		name: "what failed is tried again at once", file: "state/retry.go",
		from: "wait = policy.Backoff(c.cfg.FirstRetry, c.cfg.MaxRetry, int(h.failures)-1)", to: "wait = 0 * waits.Backoff(1, 1, 0)",
		test: "TestARetryWaitsAndGoesElsewhere",
	},
	{
		name: "what failed goes to the agent on which it failed", file: "state/lose.go",
		from: "h.failedBy = append(h.failedBy, a.name())", to: "h.failedBy = append(h.failedBy, \"\")",
		test: "TestARetryWaitsAndGoesElsewhere",
	},
	{
		name: "a retry waits for another agent for ever", file: "state/retry.go",
		from: "now.After(h.elsewhere)", to: "now.IsZero()",
		test: "TestARetryDoesNotWaitForAnotherAgentForEver",
	},
	{
		name: "attempts that are nobody's fault are not bounded", file: "state/lose.go",
		from: "h.failures >= blamelessAttempts*c.cfg.MaxAttempts", to: "h.failures >= 1000*blamelessAttempts*c.cfg.MaxAttempts",
		test: "TestAttemptsAreBoundedWhoeverIsToBlame",
	},
	{
		name: "a batch is never given up", file: "state/lose.go",
		from: "h.faults >= c.cfg.MaxAttempts ||", to: "h.faults >= 1000*c.cfg.MaxAttempts ||",
		test: "TestABatchThatTheFarmFailsRepeatedlyBecomesADeadLetter",
	},
	{
		name: "an agent on which all fails has no rest", file: "state/lose.go",
		from: "\t\tc.beginCooldown(a, w, message)\n", to: "",
		test: "TestABrokenAgentCostsItsOwnLeases",
	},
	{
		name: "failures of a broken agent count against its batches", file: "state/lose.go",
		from: "} else {\n\t\th.faults++\n\t}", to: "}\n\th.faults++",
		test: "TestFailuresOfABrokenAgentDoNotCountAgainstItsBatches",
	},
	{
		name: "what one builder builds keeps a device from what others build", file: "state/cooldown.go",
		from: "what.Builder != \"\" && !m.othersBuild(w.(*batch))", to: "what.Builder != \"\"",
		test: "TestABuilderWhoseHarnessDoesNotStartCostsNoDeviceOthersWork",
	},
	{
		name: "what runs nowhere is built again by nobody else", file: "state/lose.go",
		from: "h.failures >= doubtful && ", to: "h.failures >= 1000*doubtful && ",
		test: "TestABuilderWhoseHarnessDoesNotStartCostsNoDeviceOthersWork",
	},
	{
		name: "a success ends no rest", file: "state/lose.go",
		from: "\tl.agent.failures.Forgive()\n", to: "",
		test: "TestSuccessEndsCooldown",
	},
	{
		name: "a cordoned device is given work", file: "state/agent.go",
		from: "return a.device.ready() && !a.failures.CoolsDown(now)", to: "return !a.failures.CoolsDown(now)",
		test: "TestACordonedDeviceIsGivenNoWorkAndStaysJoined",
	},
})
