package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/tilth-dev/tilth/records"
)

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
