package records

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// RequestKey is the key of an owner's request. Two owners may choose the same one. Neither has a zero byte.
func RequestKey(owner, requestID string) []byte {
	return fmt.Appendf(nil, "\x00%s\x00%s", owner, requestID)
}

// ownerField is the number of JobSpec.owner.
const ownerField = 2

// OwnerOf finds the owner in an encoded specification, which has its fields in their order; empty when there is none.
func OwnerOf(spec []byte) string {
	for len(spec) > 0 {
		number, kind, n := protowire.ConsumeTag(spec)
		if n < 0 || number > ownerField {
			return ""
		}
		spec = spec[n:]
		if number == ownerField && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(spec)
			return string(value)
		}
		if n = protowire.ConsumeFieldValue(number, kind, spec); n < 0 {
			return ""
		}
		spec = spec[n:]
	}
	return ""
}
