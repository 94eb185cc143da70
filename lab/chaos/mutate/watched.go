package mutate

// watched mutates promise 4: changed devices are detected, and others are left alone.
var watched = in("tracker/policy", []mutation{
	{
		name: "a slow device is not quarantined", file: "drift_judge.go",
		from: "case drift > p.Quarantine:", to: "case drift > 1000*p.Quarantine:",
		test: "TestASlowDeviceIsQuarantinedWithBackOffAndProbedBack",
	},
	{
		name: "a quarantine is as long as the one before", file: "drift_judge.go",
		from: "p.FirstProbe<<(c.Strikes-1)", to: "p.FirstProbe<<(c.Strikes-c.Strikes)",
		test: "TestASlowDeviceIsQuarantinedWithBackOffAndProbedBack",
	},
	{
		name: "slow drift is never compared with the reference", file: "drift_judge.go",
		from: "if d := DriftOf(c.GetLevel(), c.GetReference()); d > p.Quarantine {", to: "if d := Drift(c.GetLevel(), c.GetLevel()); d > p.Quarantine {",
		test: "TestSlowDriftBeyondTheLimitQuarantines",
	},
	{
		name: "a device may be noisy for ever", file: "drift_judge.go",
		from: "disturbed >= p.Settle && least > p.Noise {", to: "disturbed >= 1000*p.Settle && least > p.Noise {",
		test: "TestADeviceThatIsNoisyForMinutesIsQuarantined",
	},
	{
		name: "the level does not follow a day's drift", file: "drift_judge.go",
		from: "\tfollow(c.Level, f)\n", to: "",
		test: "TestTheDriftOfADayIsNoEvent",
	},
})
