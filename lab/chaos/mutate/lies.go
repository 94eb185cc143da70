package mutate

import "slices"

// lies mutates promise 10 on cheating candidates.
var lies = slices.Concat(
	in("runner", []mutation{
		{
			name: "a best is believed without an examination", file: "examine.go",
			from: "if seconds <= maxClockRatio*claimed {", to: "if seconds >= 0 {",
			test: "TestAKernelIsTimedOnDataThatItHasNotSeen",
		},
		{
			name: "the clock of a candidate's process is believed", file: "examine.go",
			from: "o.Samples = []float64{seconds}", to: "_ = seconds",
			test: "TestTheClockOfACandidatesProcessIsNotBelieved",
		},
		{
			name: "calibrations by a candidate's process are believed", file: "follow.go",
			from: "return max(seconds, m.clean/mostSpeedUp)", to: "return max(seconds, 0*m.clean/mostSpeedUp)",
			test: "TestTheClockOfACandidatesProcessIsNotBelieved",
		},
		{
			name: "what an examination puts out is not looked at", file: "examine.go",
			from: "x.judge.verdicts[0].growth); message != \"\" {", to: "x.judge.verdicts[0].growth); message == \"\\x00\" {",
			test: "TestDataThatACandidateHasNotSeenTellsWhatItGuesses",
		},
		{
			name: "only the first group of an examination is looked at", file: "examine.go",
			from: "if wrong := x.wrong(k); wrong != \"\" {", to: "if wrong := x.wrong(k); wrong != \"\" && k == 0 {",
			test: "TestWhatIsPutOffInAnExaminationIsWrong",
		},
		{
			name: "a candidate is timed on what it was verified on", file: "judge.go",
			from: "j.set = (j.set + 1 + rand.IntN(practiceSets-1)) % practiceSets", to: "j.set = (j.set + 1 + rand.IntN(practiceSets-1)) % 1",
			test: "TestWhatIsNotExaminedIsJudgedOnDataThatItHasNotSeenToo",
		},
		{
			name: "a candidate says of itself that it is right", file: "judge.go",
			from: "return v, v.wrong == \"\" && v.asked >= leastVerdicts", to: "return v, true",
			test: "TestACandidateWritesNoVerdict",
		},
		{
			name: "a candidate that fails beside another has failed", file: "remeasure.go",
			from: "if len(m.plan.Candidates) == 1 {", to: "if len(m.plan.Candidates) > 0 {",
			test: "TestWhatAnObjectDoesToItsProcessCostsNoRival",
		},
	}),
	in("runner", []mutation{
		{
			name: "a kernel's tolerance has no bound", file: "verify_arg.go",
			from: "o.Times(growth)", to: "a.Tolerance*max(growth, 1) + a.Rounding",
			test: "TestJudgeTellsRightFromWrong",
		},
		{
			name: "direct sums of integers may be wrong", file: "verify_arg.go",
			from: "return d, o.OfIntegers(growth, d.largest)", to: "return d, o.OfIntegers(max(growth, 2), d.largest)",
			test: "TestJudgeTellsRightFromWrong",
		},
		{
			name: "indices may be wrong", file: "verify_arg.go",
			from: "d.relative == 0 || !isRounded(a.DType)", to: "d.relative == 0",
			test: "TestJudgeTellsRightFromWrong",
		},
		{
			name: "what is no number is right", file: "verify_compare.go",
			from: "case !finite(a) || !finite(b):", to: "case !finite(a) && !finite(b):",
			test: "TestJudgeTellsRightFromWrong",
		},
		{
			name: "one output is looked at", file: "verify_arg.go",
			from: "got, want = got[padded(a.Bytes):], want[padded(a.Bytes):]", to: "return relative, \"\"",
			test: "TestEachOutputIsJudged",
		},
		{
			name: "a process takes away the memory that is judged", file: "verify_memory.go",
			from: "unix.F_SEAL_SHRINK|", to: "",
			test: "TestMemoryBecomesNoSmaller",
		},
	}),
)
