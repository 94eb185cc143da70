package records

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
)

// RowKind is a kind of row that stores of all kinds have, as people call it.
type RowKind string

// The kinds of rows. Numbers in keys are big-endian; values are protocol buffers unless said otherwise.
const (
	// RowSpec has job id -> tilth.v1.JobSpec.
	RowSpec RowKind = "specifications"
	// RowJob has job id -> open(1) JobRow; open is 1 for a job that has not ended, or else 0.
	RowJob RowKind = "jobs"
	// RowProgress has job id 0 task(4) -> tilth.v1.TaskProgress.
	RowProgress RowKind = "progress of tasks"
	// RowRequest has the key of a request (see RequestKey, and Store.JobByRequest) -> job id.
	RowRequest RowKind = "requests"
	// RowEvent has job id 0 sequence(8) -> EventRow; the sequence is that of its last event.
	RowEvent RowKind = "rows of events"
	// RowEnded has job id -> EndedRow.
	RowEnded RowKind = "ended jobs"
	// RowDropped has job id -> nothing: a job that was dropped, and of which rows are left.
	RowDropped RowKind = "dropped jobs"
	// RowLastJob has LastJobKey -> id of the last job that was dropped.
	RowLastJob RowKind = "last dropped job"
	// RowBatch has batch id -> BatchRow of a batch under way.
	RowBatch RowKind = "batches"
	// RowClosed has batch id -> BatchRow of a batch that ended.
	RowClosed RowKind = "closed batches"
	// RowAgent has agent name -> tilth.v1.Agent.
	RowAgent RowKind = "agents"
	// RowDevice has agent name -> DeviceRow.
	RowDevice RowKind = "devices"
	// RowWorkload has workload digest -> canonical form.
	RowWorkload RowKind = "workloads"
	// RowGroup has target 0 workload digest -> GroupRow.
	RowGroup RowKind = "groups of records"
	// RowRecord has group(4) Key -> tilth.v1.Record without what the group says.
	RowRecord RowKind = "records"
	// RowImport has import(8) -> nothing: an import that is to be brought to its end.
	RowImport RowKind = "imports"
	// RowChunk has import(8) chunk(8) -> a chunk of such an import; see DecodeChunk.
	RowChunk RowKind = "chunks of imports"
)

// LastJobKey is the key of the one row of RowLastJob.
const LastJobKey = "last job"

// RowKinds are all kinds of rows, in the order in which they are copied.
func RowKinds() []RowKind {
	return []RowKind{
		RowSpec, RowJob, RowProgress, RowRequest, RowEvent, RowEnded, RowDropped, RowLastJob, RowBatch, RowClosed, RowAgent,
		RowDevice, RowWorkload, RowGroup, RowRecord, RowImport, RowChunk,
	}
}

// Row is a row of a kind: what every store keeps, whatever it keeps it in.
type Row struct{ Key, Value []byte }

// Bounds of a page of rows.
const (
	// RowsPerPage are in a page at most.
	RowsPerPage = 4096
	// BytesPerPage ends a page with the row that makes it so large.
	BytesPerPage = 4 << 20
)

// Stopped is a store that no process opens until it is closed. Its methods are called by one goroutine.
type Stopped interface {
	// Name is how people are told of it, without passwords.
	Name() string
	// State names what the store keeps. It is another once the store was opened for writing or anything was written,
	// and no two stores that keep different things have the same.
	State(ctx context.Context) (string, error)
	// Page returns rows of a kind in the order of their keys, from the first after a key on (nil = the first of all);
	// none after the last. They are the caller's. ErrDamaged when a row is.
	Page(ctx context.Context, kind RowKind, after []byte) ([]Row, error)
	// Close lets others open the store.
	Close() error
}

// Target is a stopped store into which rows are copied.
type Target interface {
	Stopped
	// Conversion returns the store's mark; nil when it has none.
	Conversion(ctx context.Context) (*storev1.Conversion, error)
	// Put adds rows of a kind that are not there, and replaces the mark, in one transaction. The first one, of a store
	// without a mark, begins a life of the store.
	Put(ctx context.Context, kind RowKind, rows []Row, mark *storev1.Conversion) error
	// HowToEmpty says how people empty it.
	HowToEmpty() string
}

// GroupRow is what a row of a group says: the group's number, and the keys of the best records that each level of
// numerics allows within the group; empty where there is none.
type GroupRow struct {
	Number uint32
	Best   [Levels][]byte
}

// Encode is number(4), and for each level length(1) key.
func (g GroupRow) Encode() []byte {
	row := binary.BigEndian.AppendUint32(nil, g.Number)
	for _, key := range g.Best {
		row = append(append(row, byte(len(key))), key...)
	}
	return row
}

// DecodeGroupRow reads what Encode wrote. ErrDamaged when that is anything else.
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
