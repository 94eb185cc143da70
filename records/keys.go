package records

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	groupBytes     = 4 // of a number that stands for a group
	recordKeyBytes = groupBytes + 8 + 8
)

// progressKey is job id 0 task.
func progressKey(jobID string, task uint32) []byte {
	return binary.BigEndian.AppendUint32(append([]byte(jobID), 0), task)
}

// eventKey is job id 0 sequence: that of a row's last event, so that the row in which an event is, or would be, is the
// first from the event's own key on.
func eventKey(jobID string, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(jobID), 0), sequence)
}

// groupKey is target 0 workload digest.
func groupKey(target, workloadDigest string) []byte {
	return append(append([]byte(target), 0), workloadDigest...)
}

// recordKey is group time ident.
func recordKey(group, within []byte) []byte {
	return append(append(make([]byte, 0, recordKeyBytes), group...), within...)
}

// keyWithinGroup is time ident; two measurements of a group with the same key are the same measurement.
func keyWithinGroup(m *tilthv1.Measurement) []byte {
	return keyOf(m, m.GetCandidate().GetDigest()+"\x00"+m.GetDevice())
}

// keyOfTrial is that of a measurement whose own key another one has: a device whose clock stands still, or who passes
// for it, measured the candidate again.
func keyOfTrial(m *tilthv1.Measurement, batchID string) []byte {
	return keyOf(m, fmt.Sprintf("%s\x00%s\x00%s\x00%d", m.GetCandidate().GetDigest(), m.GetDevice(), batchID, m.GetCandidate().GetTrial()))
}

func keyOf(m *tilthv1.Measurement, identity string) []byte {
	ident := sha256.Sum256([]byte(identity))
	key := binary.BigEndian.AppendUint64(make([]byte, 0, 8+8), uint64(m.GetAt().AsTime().UnixNano()))
	return append(key, ident[:8]...)
}
