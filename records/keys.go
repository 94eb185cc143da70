package records

import (
	"crypto/sha256"
	"encoding/binary"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const recordKeyBytes = 4 + 8 + 8

// progressKey is job id 0 task.
func progressKey(jobID string, task uint32) []byte {
	return binary.BigEndian.AppendUint32(append([]byte(jobID), 0), task)
}

// eventKey is job id 0 sequence.
func eventKey(jobID string, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(jobID), 0), sequence)
}

// groupKey is target 0 workload digest.
func groupKey(target, workloadDigest string) []byte {
	return append(append([]byte(target), 0), workloadDigest...)
}

// recordKey is group time ident; two measurements with the same key are the same measurement.
func recordKey(group []byte, m *tilthv1.Measurement) []byte {
	key := make([]byte, 0, recordKeyBytes)
	key = append(key, group...)
	key = binary.BigEndian.AppendUint64(key, uint64(m.GetAt().AsTime().UnixNano()))
	ident := sha256.Sum256([]byte(m.GetCandidate().GetDigest() + "\x00" + m.GetDevice()))
	return append(key, ident[:8]...)
}
