package bolt

import (
	"encoding/binary"

	"github.com/tilth-dev/tilth/records"
)

// The file, bucket by bucket. Numbers in keys are big-endian; values are protocol buffers unless noted.
//
//	meta       "version"                  -> uint32: version of this schema, without a checksum
//	meta       "life"                     -> name of the generation that began when the file was last opened for writing
//	meta       "copied"                   -> time, as text without a checksum: the file is a copy made then, not opened since
//	meta       "last job"                 -> id of the last job that was dropped
//	meta       "conversion"               -> Conversion: rows of another store are being copied into the file; see Convert
//	specs      job id                     -> tilth.v1.JobSpec, written once
//	jobs       job id                     -> JobRow: the job without spec and progress
//	open       job id                     -> nothing: open jobs
//	progress   job id 0 task(4)           -> tilth.v1.TaskProgress
//	requests   0 owner 0 request id       -> job id (text); the request id alone in files from before requests had owners
//	events     job id 0 sequence(8)       -> EventRow; sequences are 1, 2, 3, ... within a job, and the key has the row's
//	                                         last sequence
//	batches    batch id                   -> BatchRow of an open batch
//	closed     batch id                   -> BatchRow of a batch whose trials are all recorded, reduced to what repeated calls
//	                                         need; or the full row of a dead batch
//	agents     agent name                 -> tilth.v1.Agent of the last session
//	devices    agent name                 -> DeviceRow of a runner with stored decisions; the bucket may be missing
//	imports    import(8) chunk(8)         -> length-delimited records to import; the bucket may be missing
//	imports    import(8)                  -> nothing: all chunks are present, and the import must be completed
//	ended      job id                     -> EndedRow of an ended job, for retention
//	dropping   job id                     -> nothing: a dropped job with leftover events, progress or batches
//	workloads  workload digest            -> canonical form (bytes)
//	groups     target 0 workload digest   -> group(4): the group's number in the keys below; the target of an owner's private
//	                                         records begins with 1 owner 1, see records.Private
//	records    group(4) time(8) ident(8)  -> tilth.v1.Record without target, workload and its digest
//	best       group(4)                   -> key in records of the best verified one, or empty; see Supersedes
//	best       group(4) level(1)          -> the same for a level of numerics below the last
//	damaged    bucket 0 key               -> a damaged row of that bucket, as found; the bucket may be missing
var (
	bucketMeta      = []byte("meta")
	bucketSpecs     = []byte("specs")
	bucketJobs      = []byte("jobs")
	bucketOpen      = []byte("open")
	bucketProgress  = []byte("progress")
	bucketRequests  = []byte("requests")
	bucketEvents    = []byte("events")
	bucketBatches   = []byte("batches")
	bucketClosed    = []byte("closed")
	bucketAgents    = []byte("agents")
	bucketWorkloads = []byte("workloads")
	bucketGroups    = []byte("groups")
	bucketRecords   = []byte("records")
	bucketBest      = []byte("best")
	bucketDevices   = []byte("devices")
	bucketImports   = []byte("imports")
	bucketDamaged   = []byte("damaged")
	bucketEnded     = []byte("ended")
	bucketDropping  = []byte("dropping")

	buckets = [][]byte{
		bucketMeta, bucketSpecs, bucketJobs, bucketOpen, bucketProgress, bucketRequests, bucketEvents, bucketBatches,
		bucketClosed, bucketAgents, bucketWorkloads, bucketGroups, bucketRecords, bucketBest,
	}
	// later lists buckets that older files of this schema may lack. Opening for writing creates them.
	later         = [][]byte{bucketDevices, bucketImports, bucketDamaged, bucketEnded, bucketDropping}
	keyVersion    = []byte("version")
	keyGeneration = []byte("life")
	keyCopied     = []byte("copied")
	keyLastJob    = []byte("last job")
	keyConversion = []byte("conversion")
)

const (
	groupBytes     = 4 // length of a group's number
	recordKeyBytes = groupBytes + len(records.Key{})
)

// progressKey returns job id 0 task.
func progressKey(jobID string, task uint32) []byte {
	return binary.BigEndian.AppendUint32(append([]byte(jobID), 0), task)
}

// eventKey returns job id 0 sequence. Rows are keyed by their last event, so the row that contains an event is the
// first at or after the event's own key.
func eventKey(jobID string, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(jobID), 0), sequence)
}

// recordKey returns group time ident.
func recordKey(number []byte, within records.Key) []byte {
	return append(append(make([]byte, 0, recordKeyBytes), number...), within[:]...)
}

// withinGroup returns the part of a record's key after the group.
func withinGroup(key []byte) (k records.Key) {
	copy(k[:], key[groupBytes:])
	return k
}
