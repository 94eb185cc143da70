// Package bolt is the store that keeps one bbolt file: jobs, their events, the batches under way, the agents that
// joined, and every measurement ever made, with an index of the best of each workload on each target. Begin to read
// in buckets.go, which draws the file. What the rows mean is for package records to say.
//
// Every value ends in a checksum of bucket, key and value, and every read checks it. What is damaged is served to
// nobody. Rows that the store does without are moved to the bucket of damaged ones; a best record is chosen again
// among the group's records; whoever asks for a job of which a row is damaged has an error that names the row. Pages
// have no checksums: opening reads all branches, of which there is one to hundreds of leaves, and refuses a file whose
// pages do not form trees. See Verify.
//
// Opening reads none of the rows of the large buckets. Files from before there were checksums are read as they are,
// and written anew when they are first opened for writing. Writers do not wait for each other: whatever was handed in
// while the disk was busy goes into the next transaction together.
package bolt
