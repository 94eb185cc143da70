package bolt

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/records"
)

// txn is a transaction of a records file. That of the writer has what it remembers from those before.
type txn struct {
	*bbolt.Tx
	db     *DB
	groups *groups
}

// table returns a bucket by its name.
func (tx *txn) table(name []byte) table {
	return table{bucket: tx.Bucket(name), name: name, sealed: tx.db.sealed}
}

// table is a bucket whose values have checksums. One that the file lacks is empty.
type table struct {
	bucket *bbolt.Bucket
	name   []byte
	sealed bool // false in files from before there were checksums
}

// get returns the value of a key; nil when there is none. An error is a Damage.
func (t table) get(key []byte) ([]byte, error) {
	if t.bucket == nil {
		return nil, nil
	}
	// Bucket.Get passes over a row whose flags were damaged.
	k, v := t.bucket.Cursor().Seek(key)
	if k == nil || !bytes.Equal(k, key) {
		return nil, nil
	}
	return t.open(k, v)
}

// has says whether there is a value, damaged or not.
func (t table) has(key []byte) bool {
	if t.bucket == nil {
		return false
	}
	k, _ := t.bucket.Cursor().Seek(key)
	return k != nil && bytes.Equal(k, key)
}

// open checks a value that a cursor came upon, and returns it without its checksum. An error is a Damage.
func (t table) open(key, stored []byte) ([]byte, error) {
	if !t.sealed {
		return stored, nil
	}
	return unseal(t.name, key, stored)
}

// put stores a value, which is the store's from here on, with the room behind it.
func (t table) put(key, value []byte) error {
	if t.sealed {
		value = seal(t.name, key, value)
	}
	return t.bucket.Put(key, value)
}

func (t table) remove(key []byte) error { return t.bucket.Delete(key) }

// cursor is at no key; its values are to be opened. A table that the file lacks has none.
func (t table) cursor() *bbolt.Cursor { return t.bucket.Cursor() }

// each calls visit with every row, until visit fails; err is that of a row which is damaged, whose value is nil then.
func (t table) each(visit func(key, value []byte, err error) error) error {
	if t.bucket == nil {
		return nil
	}
	return t.bucket.ForEach(func(key, stored []byte) error {
		value, err := t.open(key, stored)
		return visit(key, value, err)
	})
}

// parse decodes a value without its checksum. An error is a Damage.
func (t table) parse(key, value []byte, into proto.Message) error {
	if err := proto.Unmarshal(value, into); err != nil {
		return damagedValue(t.name, key, err)
	}
	return nil
}

// damagedValue is the Damage of a value that cannot be decoded.
func damagedValue(bucket, key []byte, err error) error {
	return damagedRow(bucket, key, fmt.Errorf("%w: %v", records.ErrDamaged, err))
}

// read decodes what a cursor came upon. An error is a Damage.
func (t table) read(key, stored []byte, into proto.Message) error {
	value, err := t.open(key, stored)
	if err != nil {
		return err
	}
	return t.parse(key, value, into)
}

// errMissingRow is the damage of a row that another one leads to.
var errMissingRow = fmt.Errorf("%w: it is missing", records.ErrDamaged)

// load decodes the value of a key that must be there. An error is a Damage.
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
