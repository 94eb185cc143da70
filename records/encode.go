package records

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// checksumBytes are left behind an encoded row, so that a store that ends rows with a checksum need not copy them.
const checksumBytes = 4

// Encode encodes a row, with room for a checksum behind it. It panics on what cannot be encoded: text that is not
// UTF-8, which the wire has refused before.
func Encode(m proto.Message) []byte {
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 0, proto.Size(m)+checksumBytes), m)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", m, err))
	}
	return b
}
