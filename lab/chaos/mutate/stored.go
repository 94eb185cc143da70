package mutate

import "slices"

// stored mutates promises 1 and 2 on rows: damage, and retention of records.
var stored = slices.Concat(
	in("records/bolt", []mutation{
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
		{
			name: "what a killed process left is not brought to the disk", file: "open.go",
			from: "guard(bolt.Sync)", to: "guard(func() error { return nil })",
			test: "TestATransactionThatAKilledProcessLeftIsOnTheDiskBeforeTheNextBegins",
		},
	}),
	[]mutation{
		{
			name: "two measurements of one instant are one", file: "records/bolt/apply.go",
			from: "\t\tif tx.table(bucketRecords).has(recordKey(g.number, key)) {\n\t\t\tkey", to: "\t\tif len(key) == 0 {\n\t\t\tkey",
			pkg: "./tracker", test: "TestTwoMeasurementsOfOneInstantAreTwoRecords",
		},
	},
)
