// Package bolt is the store in a single bbolt file: jobs, events, open batches, agents, and every measurement, with an
// index of the best record of each workload on each target. Start with table.go, which describes the file; package
// records defines what rows mean.
//
// Every value ends in a checksum of bucket, key and value that every read verifies, and damaged rows are never
// returned. Rows that the store can do without move to the bucket of damaged ones, and a best record is recomputed
// from the group's records. Look-ups of a job with a damaged row return an error that names the row. Pages have no
// checksums: opening reads all branch pages, one for hundreds of leaves, and refuses a file whose pages do not form
// trees. See Verify.
//
// Opening reads no rows of the large buckets. Writers do not wait for each other: all commits submitted while the disk
// is busy share the next transaction. OpenMemory returns the same store without a file.
package bolt
