package records

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
)

// RequestKey is the key of an owner's request. Two owners may choose the same one. Neither has a zero byte.
func RequestKey(owner, requestID string) []byte {
	return fmt.Appendf(nil, "\x00%s\x00%s", owner, requestID)
}

// Owner is whose a job is.
type Owner struct {
	Name string
	// Private jobs, and their records, are for their owner alone.
	Private bool
}

// Row is the owner as a job's row has it.
func (o Owner) Row() *storev1.JobOwner { return &storev1.JobOwner{Name: o.Name, Private: o.Private} }

// OwnerInRow is the owner that a job's row tells of; false for rows from before they did.
func OwnerInRow(row *storev1.JobRow) (o Owner, told bool) {
	of := row.GetOwner()
	return Owner{Name: of.GetName(), Private: of.GetPrivate()}, of != nil
}

// Numbers of JobSpec's fields.
const (
	ownerField   = 2
	privateField = 11
)

// OwnerOf finds the owner in an encoded specification, which has its fields in their order. It decodes no other field.
func OwnerOf(spec []byte) (o Owner) {
	for len(spec) > 0 {
		number, kind, n := protowire.ConsumeTag(spec)
		if n < 0 || number > privateField {
			return o
		}
		spec = spec[n:]
		switch {
		case number == ownerField && kind == protowire.BytesType:
			value, _ := protowire.ConsumeBytes(spec)
			o.Name = string(value)
		case number == privateField && kind == protowire.VarintType:
			value, _ := protowire.ConsumeVarint(spec)
			o.Private = value != 0
		}
		if n = protowire.ConsumeFieldValue(number, kind, spec); n < 0 {
			return o
		}
		spec = spec[n:]
	}
	return o
}
