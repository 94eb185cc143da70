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

// txn is a transaction of a records file. Only the writer's has groups.
type txn struct {
	*bbolt.Tx
	db     *DB
	groups *groups
}

// table returns the table for a bucket name.
func (tx *txn) table(name []byte) table {
	return table{bucket: tx.Bucket(name), name: name, sealed: tx.db.sealed}
}

// table is a bucket whose values have checksums. A bucket that the file lacks is an empty table.
type table struct {
	bucket *bbolt.Bucket
	name   []byte
	sealed bool // false in files from before checksums
}

// get returns the value of a key, or nil. An error is a *records.Damage.
func (t table) get(key []byte) ([]byte, error) {
	if t.bucket == nil {
		return nil, nil
	}
	// Bucket.Get skips rows whose flags are damaged.
	k, v := t.bucket.Cursor().Seek(key)
	if k == nil || !bytes.Equal(k, key) {
		return nil, nil
	}
	return t.open(k, v)
}

// has reports whether a key has a value, damaged or not.
func (t table) has(key []byte) bool {
	if t.bucket == nil {
		return false
	}
	k, _ := t.bucket.Cursor().Seek(key)
	return k != nil && bytes.Equal(k, key)
}

// open verifies a value read through a cursor and strips its checksum. An error is a *records.Damage.
func (t table) open(key, stored []byte) ([]byte, error) {
	if !t.sealed {
		return stored, nil
	}
	return unseal(t.name, key, stored)
}

// put stores a value. The store owns it afterwards, including its spare capacity.
func (t table) put(key, value []byte) error {
	if t.sealed {
		value = seal(t.name, key, value)
	}
	return t.bucket.Put(key, value)
}

func (t table) remove(key []byte) error { return t.bucket.Delete(key) }

// cursor returns an unpositioned cursor; its values must be passed to open. The bucket must exist.
func (t table) cursor() *bbolt.Cursor { return t.bucket.Cursor() }

// each visits every row until visit fails. For a damaged row, err is set and value is nil.
func (t table) each(visit func(key, value []byte, err error) error) error {
	if t.bucket == nil {
		return nil
	}
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
