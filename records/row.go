package records

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
)

// RowKind is a kind of row, common to all stores, by its name for messages.
type RowKind string

// The kinds of rows. Numbers in keys are big-endian; values are protocol buffers unless noted.
const (
	// RowSpec has job id -> tilth.v1.JobSpec.
	RowSpec RowKind = "specifications"
	// RowJob has job id -> open(1) JobRow; open is 1 for an open job, else 0.
	RowJob RowKind = "jobs"
	// RowProgress has job id 0 task(4) -> tilth.v1.TaskProgress.
	RowProgress RowKind = "progress of tasks"
	// RowRequest has RequestKey -> job id (see Store.JobByRequest).
	RowRequest RowKind = "requests"
	// RowEvent has job id 0 sequence(8) -> EventRow; the sequence is that of the row's last event.
	RowEvent RowKind = "rows of events"
	// RowEnded has job id -> EndedRow.
	RowEnded RowKind = "ended jobs"
	// RowDropped has job id -> nothing: a dropped job with leftover rows.
	RowDropped RowKind = "dropped jobs"
	// RowLastJob has LastJobKey -> id of the last dropped job.
	RowLastJob RowKind = "last dropped job"
	// RowBatch has batch id -> BatchRow of an open batch.
	RowBatch RowKind = "batches"
	// RowClosed has batch id -> BatchRow of a closed batch.
	RowClosed RowKind = "closed batches"
	// RowAgent has agent name -> tilth.v1.Agent.
	RowAgent RowKind = "agents"
	// RowDevice has agent name -> DeviceRow.
	RowDevice RowKind = "devices"
	// RowWorkload has workload digest -> canonical form.
	RowWorkload RowKind = "workloads"
	// RowGroup has target 0 workload digest -> GroupRow.
	RowGroup RowKind = "groups of records"
	// RowRecord has group(4) Key -> tilth.v1.Record without the fields that the group implies.
	RowRecord RowKind = "records"
	// RowImport has import(8) -> nothing: an import to be completed.
	RowImport RowKind = "imports"
	// RowChunk has import(8) chunk(8) -> a chunk of such an import; see DecodeChunk.
	RowChunk RowKind = "chunks of imports"
)

// LastJobKey is the only key of RowLastJob.
const LastJobKey = "last job"

// RowKinds returns all kinds in the order in which they are copied.
func RowKinds() []RowKind {
	return []RowKind{
		RowSpec, RowJob, RowProgress, RowRequest, RowEvent, RowEnded, RowDropped, RowLastJob, RowBatch, RowClosed, RowAgent,
		RowDevice, RowWorkload, RowGroup, RowRecord, RowImport, RowChunk,
	}
}

// Row is a row in the format common to all stores.
type Row struct{ Key, Value []byte }

// Bounds of a page of rows.
const (
	// RowsPerPage is the maximum number of rows.
	RowsPerPage = 4096
	// BytesPerPage ends a page with the row that reaches it.
	BytesPerPage = 4 << 20
)

// Stopped is a store that is locked against other processes. Its methods must not be called concurrently.
type Stopped interface {
	// Name returns a name for messages, without passwords.
	Name() string
	// State returns a token for the contents. It changes whenever the store is opened for writing or written, and
	// differs between stores with different contents.
	State(ctx context.Context) (string, error)
	// Page returns rows of a kind sorted by key, starting after a key (nil for the beginning); none after the last.
	// The caller owns them. It returns ErrDamaged for a damaged row.
	Page(ctx context.Context, kind RowKind, after []byte) ([]Row, error)
	// Close releases the store for other processes.
	Close() error
}

// Target is a stopped store that rows are copied into.
type Target interface {
	Stopped
	// Conversion returns the mark of an unfinished conversion, or nil.
	Conversion(ctx context.Context) (*storev1.Conversion, error)
	// Put adds new rows of a kind and replaces the mark in one transaction. The first call on a store without a mark
	// starts a generation.
	Put(ctx context.Context, kind RowKind, rows []Row, mark *storev1.Conversion) error
	// EmptyHint describes to users how to empty the store.
	EmptyHint() string
}

// GroupRow is the row of a group: its number, and the key of the best record at each level of numerics, empty without
// one.
type GroupRow struct {
	Number uint32
	Best   [Levels][]byte
}

// Encode returns number(4), then for each level length(1) key.
func (g GroupRow) Encode() []byte {
	row := binary.BigEndian.AppendUint32(nil, g.Number)
	for _, key := range g.Best {
		row = append(append(row, byte(len(key))), key...)
	}
	return row
}

// DecodeGroupRow is the inverse of Encode. It returns ErrDamaged for any other input.
func DecodeGroupRow(row []byte) (g GroupRow, err error) {
	damaged := fmt.Errorf("%w: the row of a group", ErrDamaged)
	if len(row) < 4 {
		return g, damaged
	}
	g.Number, row = binary.BigEndian.Uint32(row), row[4:]
	for level := range g.Best {
		if len(row) == 0 || len(row) <= int(row[0]) || row[0] != 0 && int(row[0]) != len(Key{}) {
			return g, damaged
		}
		end := 1 + int(row[0])
		g.Best[level], row = bytes.Clone(row[1:end]), row[end:]
	}
	if len(row) > 0 {
		return g, damaged
	}
	return g, nil
}
