package bolt

import (
	"bytes"
	"encoding/binary"

	"github.com/tilth-dev/tilth/records"
)

const (
	groupBytes     = 4 // of a number that stands for a group
	recordKeyBytes = groupBytes + len(records.Key{})
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

// groupOf is the group of a key in the bucket of groups.
func groupOf(key []byte) records.Group {
	target, workload, _ := bytes.Cut(key, []byte{0})
	return records.Group{Target: string(target), Workload: string(workload)}
}

// recordKey is group time ident.
func recordKey(number []byte, within records.Key) []byte {
	return append(append(make([]byte, 0, recordKeyBytes), number...), within[:]...)
}

// withinGroup is the key of a record within its group, by that in the bucket of records.
func withinGroup(key []byte) (k records.Key) {
	copy(k[:], key[groupBytes:])
	return k
}
