package main

// lies are mutations of what promise 10 says of candidates that pretend.
var lies = in("runner", []mutation{
	{
		name: "a best is believed without an examination", file: "examine.go",
		from: "if seconds <= believable*claimed {", to: "if seconds >= 0 {",
		test: "TestAKernelIsTimedOnDataThatItHasNotSeen",
	},
	{
		name: "the clock of a candidate's process is believed", file: "examine.go",
		from: "o.Samples = []float64{seconds}", to: "_ = seconds",
		test: "TestTheClockOfACandidatesProcessIsNotBelieved",
	},
})
