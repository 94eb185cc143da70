package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

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
//	requests   0 owner 0 request id       -> job id (text)
//	events     job id 0 sequence(8)       -> EventRow; sequences are 1, 2, 3, ... within a job, and the key has the row's
//	                                         last sequence
//	batches    batch id                   -> BatchRow of an open batch
//	closed     batch id                   -> BatchRow of a batch whose trials are all recorded, reduced to what repeated calls
//	                                         need; or the full row of a dead batch
//	agents     agent name                 -> tilth.v1.Agent of the last session
//	devices    agent name                 -> DeviceRow of a runner with stored decisions
//	imports    import(8) chunk(8)         -> length-delimited records to import
//	imports    import(8)                  -> nothing: all chunks are present, and the import must be completed
//	ended      job id                     -> EndedRow of an ended job, for retention
//	dropping   job id                     -> nothing: a dropped job with leftover events, progress or batches
//	workloads  workload digest            -> canonical form (bytes)
//	groups     target 0 workload digest   -> group(4): the group's number in the keys below; the target of an owner's private
//	                                         records begins with 1 owner 1, see records.Private
//	records    group(4) time(8) ident(8)  -> tilth.v1.Record without target, workload and its digest
//	best       group(4)                   -> key in records of the best verified one, or empty; see Supersedes
//	best       group(4) level(1)          -> the same for a level of numerics below the last
//	damaged    bucket 0 key               -> a damaged row of that bucket, as found
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
		bucketDevices, bucketImports, bucketDamaged, bucketEnded, bucketDropping,
	}
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

// txn is a transaction of a records file. Only the writer's has groups.
type txn struct {
	*bbolt.Tx
	db     *DB
	groups *groups
}

// table returns the table for a bucket name.
func (tx *txn) table(name []byte) table {
	return table{bucket: tx.Bucket(name), name: name}
}

// table is a bucket whose values have checksums.
type table struct {
	bucket *bbolt.Bucket
	name   []byte
}

// get returns the value of a key, or nil. An error is a *records.Damage.
func (t table) get(key []byte) ([]byte, error) {
	// Bucket.Get skips rows whose flags are damaged.
	k, v := t.bucket.Cursor().Seek(key)
	if k == nil || !bytes.Equal(k, key) {
		return nil, nil
	}
	return t.open(k, v)
}

// has reports whether a key has a value, damaged or not.
func (t table) has(key []byte) bool {
	k, _ := t.bucket.Cursor().Seek(key)
	return k != nil && bytes.Equal(k, key)
}

// open verifies a value read through a cursor and strips its checksum. An error is a *records.Damage.
func (t table) open(key, stored []byte) ([]byte, error) { return unseal(t.name, key, stored) }

// put stores a value. The store owns it afterwards, including its spare capacity.
func (t table) put(key, value []byte) error { return t.bucket.Put(key, seal(t.name, key, value)) }

func (t table) remove(key []byte) error { return t.bucket.Delete(key) }

// cursor returns an unpositioned cursor; its values must be passed to open.
func (t table) cursor() *bbolt.Cursor { return t.bucket.Cursor() }

// each visits every row until visit fails. For a damaged row, err is set and value is nil.
func (t table) each(visit func(key, value []byte, err error) error) error {
	return t.bucket.ForEach(func(key, stored []byte) error {
		value, err := t.open(key, stored)
		return visit(key, value, err)
	})
}

// parse decodes a value without checksum. An error is a *records.Damage.
func (t table) parse(key, value []byte, into proto.Message) error {
	if err := proto.Unmarshal(value, into); err != nil {
		return damagedValue(t.name, key, err)
	}
	return nil
}

// damagedValue returns the damage of an undecodable value.
func damagedValue(bucket, key []byte, err error) error {
	return damagedRow(bucket, key, fmt.Errorf("%w: %v", records.ErrDamaged, err))
}

// read verifies and decodes a value read through a cursor. An error is a *records.Damage.
func (t table) read(key, stored []byte, into proto.Message) error {
	value, err := t.open(key, stored)
	if err != nil {
		return err
	}
	return t.parse(key, value, into)
}

// errMissingRow is the damage of a row that another row refers to.
var errMissingRow = fmt.Errorf("%w: it is missing", records.ErrDamaged)

// load decodes the value of a key that must exist. An error is a *records.Damage.
func (t table) load(key []byte, into proto.Message) error {
	value, err := t.get(key)
	if err == nil && value == nil {
		err = damagedRow(t.name, key, errMissingRow)
	}
	if err != nil {
		return err
	}
	return t.parse(key, value, into)
}

// sealBytes is the length of the checksum at the end of every value: CRC-32C of the bucket's name, the key, the key's
// length and the value, so that an intact value in the wrong place is detected too.
const sealBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(bucket, key, value []byte) uint32 {
	sum := crc32.Update(0, castagnoli, bucket)
	sum = crc32.Update(sum, castagnoli, key)
	sum = crc32.Update(sum, castagnoli, binary.BigEndian.AppendUint32(nil, uint32(len(key))))
	return crc32.Update(sum, castagnoli, value)
}

// seal appends the checksum to a value.
func seal(bucket, key, value []byte) []byte {
	return binary.BigEndian.AppendUint32(value, checksum(bucket, key, value))
}

// unseal verifies and strips the checksum. An error is a *records.Damage.
func unseal(bucket, key, sealed []byte) ([]byte, error) {
	n := len(sealed) - sealBytes
	if n < 0 || binary.BigEndian.Uint32(sealed[n:]) != checksum(bucket, key, sealed[:n]) {
		return nil, damagedRow(bucket, key, fmt.Errorf("%w: its checksum is wrong", records.ErrDamaged))
	}
	return sealed[:n:n], nil
}
