package records

import (
	"fmt"
	"slices"
)

// PackKeys concatenates keys, as on the wire.
func PackKeys(keys []Key) []byte {
	packed := make([]byte, 0, len(keys)*len(Key{}))
	for _, k := range keys {
		packed = append(packed, k[:]...)
	}
	return packed
}

// UnpackKeys is the inverse of PackKeys. It returns ErrInvalid if the keys are incomplete or unsorted.
func UnpackKeys(packed []byte) ([]Key, error) {
	if len(packed)%len(Key{}) != 0 {
		return nil, fmt.Errorf("%w: %d bytes are not keys of %d", ErrInvalid, len(packed), len(Key{}))
	}
	keys := make([]Key, 0, len(packed)/len(Key{}))
	for one := range slices.Chunk(packed, len(Key{})) {
		k := Key(one)
		if len(keys) > 0 && k.Compare(keys[len(keys)-1]) <= 0 {
			return nil, fmt.Errorf("%w: keys are not in order", ErrInvalid)
		}
		keys = append(keys, k)
	}
	return keys, nil
}
