package main

import "slices"

// stored are mutations of what promises 1 and 2 say of files: damage, copies, and lives that are lost.
var stored = slices.Concat(
	in("records", []mutation{
		{
			name: "a row's checksum is not compared", file: "seal.go",
			from: "binary.BigEndian.Uint32(sealed[n:]) != checksum(bucket, key, sealed[:n])", to: "binary.BigEndian.Uint32(sealed[n:]) == 0",
			test: "TestNoFlippedBitIsServed",
		},
		{
			name: "a checksum does not cover the key", file: "seal.go",
			from: "sum = crc32.Update(sum, castagnoli, key)", to: "sum = crc32.Update(sum, castagnoli, key[:0])",
			test: "TestNoFlippedBitIsServed",
		},
	}),
	in("tracker", []mutation{
		{
			name: "a budget's time runs while nothing can run", file: "budget_time.go",
			from: "_, reason := t.blocked(known, j)\n\treturn reason == 0", to: "_, _ = t.blocked(known, j)\n\treturn true",
			test: "TestNoBudgetRunsWhileNothingCanRun",
		},
		{
			name: "time in which the tracker stood still is the job's", file: "budget_time.go",
			from: "j.spent += min(max(j.counted.Sub(since), 0), mostCounted)", to: "j.spent += max(j.counted.Sub(since), 0)",
			test: "TestATrackerThatStoodStillSpendsNobodysTime",
		},
	}),
	[]mutation{
		{
			name: "two measurements of one instant are one", file: "records/write.go",
			from: "if tx.table(bucketRecords).has(key) {", to: "if len(key) == 0 {",
			pkg: "./tracker", test: "TestTwoMeasurementsOfOneInstantAreTwoRecords",
		},
		{
			name: "a restored backup honours the sessions of the lost life", file: "records/life.go",
			from: "return errors.Join(tx.voidSessions(), meta.Delete(keyCopied))", to: "return meta.Delete(keyCopied)",
			pkg: "./tracker", test: "TestNothingThatALostLifeHandedOutIsAccepted",
		},
		{
			name: "a request of one owner answers another's", file: "records/requests.go",
			from: "return fmt.Appendf(nil, \"\\x00%s\\x00%s\", owner, requestID)", to: "return fmt.Appendf(nil, \"\\x00%s\\x00%s\", owner[:0], requestID)",
			pkg: "./tracker", test: "TestARequestIsItsOwners",
		},
	},
)
