package bolt

// The file, bucket by bucket. Numbers in keys are big-endian; values are protocol buffers unless said otherwise.
//
//	meta       "version"                  -> uint32: version of this schema, without a checksum
//	meta       "life"                     -> name of the life that began when the file was last opened for writing
//	meta       "copied"                   -> time, as text without a checksum: the file is a copy made then, and was not opened since
//	meta       "last job"                 -> id of the last job that was dropped
//	meta       "conversion"               -> Conversion: the rows of another store are copied into the file; see Convert
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
//	groups     target 0 workload digest   -> group(4): a number that stands for the pair in the keys below; the target of an
//	                                         owner's private records begins with 1 owner 1, see records.Private
//	records    group(4) time(8) ident(8)  -> tilth.v1.Record without target, workload and its digest
//	best       group(4)                   -> key in records of the best verified one, empty when there is none; see Supersedes
//	best       group(4) level(1)          -> the same among those that a level of numerics below the last allows
//	damaged    bucket 0 key               -> a row of that bucket that was damaged, as it was found; the bucket may be missing
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
	// later are buckets that files of this version may lack: those made before there were such. Opening for writing
	// adds them.
	later         = [][]byte{bucketDevices, bucketImports, bucketDamaged, bucketEnded, bucketDropping}
	keyVersion    = []byte("version")
	keyLife       = []byte("life")
	keyCopied     = []byte("copied")
	keyLastJob    = []byte("last job")
	keyConversion = []byte("conversion")
)
