// Package records is the store: one bbolt file that holds jobs, their events, the batches under way, the agents that
// joined, and every measurement ever made, with an index of the best of each workload on each target.
//
// The file, bucket by bucket. Numbers in keys are big-endian; values are protocol buffers unless said otherwise.
//
//	meta       "version"                  -> uint32: version of this schema, without a checksum
//	meta       "life"                     -> name of the life that began when the file was last opened for writing
//	meta       "copied"                   -> time, as text without a checksum: the file is a copy made then, and was not opened since
//	meta       "last job"                 -> id of the last job that was dropped
//	specs      job id                     -> tilth.v1.JobSpec, written once
//	jobs       job id                     -> JobRow: the job without spec and progress
//	open       job id                     -> nothing: jobs that have not ended
//	progress   job id 0 task(4)           -> tilth.v1.TaskProgress
//	requests   0 owner 0 request id       -> job id (text); in files from before requests had owners the request id alone
//	events     job id 0 sequence(8)       -> EventRow; sequences are 1, 2, 3, ... within a job, and the key has that of the row's
//	                                         last event
//	batches    batch id                   -> BatchRow of a batch under way
//	closed     batch id                   -> BatchRow of a batch whose trials are all recorded, cut to what repeats need; or, of
//	                                         one that the farm gave up, whole
//	agents     agent name                 -> tilth.v1.Agent of the last session
//	devices    agent name                 -> DeviceRow of a runner of which something was decided; the bucket may be missing
//	imports    import(8) chunk(8)         -> records to be imported, each after its length; the bucket may be missing
//	imports    import(8)                  -> nothing: all of them are there, and the import is to be brought to its end
//	ended      job id                     -> EndedRow of a job that has ended, by which it is kept or dropped
//	dropping   job id                     -> nothing: a job that was dropped, of which rows of events, progress or batches are left
//	workloads  workload digest            -> canonical form (bytes)
//	groups     target 0 workload digest   -> group(4): a number that stands for the pair in the keys below
//	records    group(4) time(8) ident(8)  -> tilth.v1.Record without target, workload and its digest
//	best       group(4)                   -> key in records of the best verified one, empty when there is none; see Supersedes
//	best       group(4) level(1)          -> the same among those that a level of numerics below the last allows
//	damaged    bucket 0 key               -> a row of that bucket that was damaged, as it was found; the bucket may be missing
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
package records
