// Package records is the store: one bbolt file that holds jobs, their events, the batches under way, the agents that
// joined, and every measurement ever made, with an index of the best of each workload on each target.
//
// The file, bucket by bucket. Numbers in keys are big-endian; values are protocol buffers unless said otherwise.
//
//	meta       "version"                  -> uint32: version of this schema
//	specs      job id                     -> tilth.v1.JobSpec, written once
//	jobs       job id                     -> JobRow: the job without spec and progress
//	open       job id                     -> nothing: jobs that have not ended
//	progress   job id 0 task(4)           -> tilth.v1.TaskProgress
//	requests   request id                 -> job id (text)
//	events     job id 0 sequence(8)       -> EventRow; sequences are 1, 2, 3, ... within a job, and the key has that of the row's
//	                                         last event
//	batches    batch id                   -> BatchRow of a batch under way
//	closed     batch id                   -> BatchRow of a batch whose trials are all recorded, cut to what repeats need; or, of
//	                                         one that the farm gave up, whole
//	agents     agent name                 -> tilth.v1.Agent of the last session
//	devices    agent name                 -> DeviceRow of a runner of which something was decided; the bucket may be missing
//	imports    import(8) chunk(8)         -> records to be imported, each after its length; the bucket may be missing
//	imports    import(8)                  -> nothing: all of them are there, and the import is to be brought to its end
//	workloads  workload digest            -> canonical form (bytes)
//	groups     target 0 workload digest   -> group(4): a number that stands for the pair in the keys below
//	records    group(4) time(8) ident(8)  -> tilth.v1.Record without target, workload and its digest
//	best       group(4)                   -> key in records of the best verified one; see Supersedes
//	best       group(4) level(1)          -> the same among those that a level of numerics below the last allows; absent while it
//	                                         is the best of all
//
// Opening reads none of the large buckets, so it takes the same time with ten records and with ten million. Writers do
// not wait for each other: whatever was handed in while the disk was busy goes into the next transaction together.
package records
