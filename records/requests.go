package records

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
)

// RequestKey returns the key of an owner's request. Owners may choose equal ids. Neither part may contain a zero byte.
func RequestKey(owner, requestID string) []byte {
	return fmt.Appendf(nil, "\x00%s\x00%s", owner, requestID)
}

// Owner is the owner of a job.
type Owner struct {
	Name string
	// Private restricts the job and its records to the owner.
	Private bool
}

// Row returns the owner as stored in a job's row.
func (o Owner) Row() *storev1.JobOwner { return &storev1.JobOwner{Name: o.Name, Private: o.Private} }

// OwnerInRow returns the owner stored in a job's row; false for rows of older versions.
func OwnerInRow(row *storev1.JobRow) (o Owner, told bool) {
	of := row.GetOwner()
	return Owner{Name: of.GetName(), Private: of.GetPrivate()}, of != nil
}

// Field numbers of JobSpec.
const (
	ownerField   = 2
	privateField = 11
)

// OwnerOf extracts the owner from an encoded specification, whose fields must be in order. It decodes no other field.
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
