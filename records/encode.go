package records

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// checksumBytes is the capacity reserved behind an encoded row, so that a store can append a checksum without copying.
const checksumBytes = 4

// Encode encodes a row, with spare capacity for a checksum. It panics if m cannot be encoded, which only happens for
// invalid UTF-8; the wire has rejected that earlier.
func Encode(m proto.Message) []byte {
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 0, proto.Size(m)+checksumBytes), m)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", m, err))
	}
	return b
}
