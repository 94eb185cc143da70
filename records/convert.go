package records

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

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

// Converted reports the progress of a conversion: the rows of a kind copied or, in the second pass, compared.
type Converted struct {
	Kind     RowKind
	Rows     uint64
	Compared bool
}

// Convert copies all rows of one store to another, compares them, and returns the number of rows by kind. The target
// must be empty or hold an interrupted conversion of the same source, which Convert resumes. A mark in the target
// records the position and prevents trackers from opening it until all rows are compared. Convert holds one page of
// rows in memory and reports progress after each page. The target starts a new generation, as on every opening for
// writing. Names and leases of earlier generations stay valid, because nothing is lost. Convert returns ErrNotEmpty
// if the target holds anything else, and ErrDiffers if a row does not match the source.
func Convert(ctx context.Context, from Stopped, to Target, told func(Converted)) ([]Converted, error) {
	c := &conversion{from: from, to: to, told: told}
	err := c.begin(ctx)
	if err == nil && !c.mark.GetFinished() {
		err = c.copyAll(ctx)
	}
	var counts []Converted
	if err == nil {
		counts, err = c.compareAll(ctx)
	}
	if err == nil {
		err = c.finish(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("convert %s into %s: %w", from.Name(), to.Name(), err)
	}
	return counts, nil
}

// conversion is a conversion in progress.
type conversion struct {
	from Stopped
	to   Target
	told func(Converted)
	mark *storev1.Conversion
}

// begin reads the mark or creates one.
func (c *conversion) begin(ctx context.Context) error {
	state, err := c.from.State(ctx)
	if err != nil {
		return err
	}
	if c.mark, err = c.to.Conversion(ctx); err != nil {
		return err
	}
	switch {
	case c.mark == nil:
	case c.mark.GetState() == state:
		return nil
	case c.mark.GetFinished():
		return fmt.Errorf("%w: it has all of %s as that was: use it, or %s", ErrNotEmpty, c.mark.GetSource(), c.to.EmptyHint())
	case c.mark.GetSource() == c.from.Name():
		return fmt.Errorf("%w: it has a part of that, which has changed since: %s, and convert again", ErrNotEmpty, c.to.EmptyHint())
	default:
		return fmt.Errorf("%w: it has a part of %s: %s, or go on with that one", ErrNotEmpty, c.mark.GetSource(), c.to.EmptyHint())
	}
	for _, kind := range RowKinds() {
		rows, err := c.to.Page(ctx, kind, nil)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			return fmt.Errorf("%w: it has %s: name another one, or %s", ErrNotEmpty, kind, c.to.EmptyHint())
		}
	}
	c.mark = &storev1.Conversion{Source: c.from.Name(), State: state}
	return c.to.Put(ctx, "", nil, c.mark)
}

// copyAll copies the rows that follow the mark.
func (c *conversion) copyAll(ctx context.Context) error {
	kinds := RowKinds()
	if kind := RowKind(c.mark.GetKind()); kind != "" {
		i := slices.Index(kinds, kind)
		if i < 0 {
			return fmt.Errorf("%w: a conversion has reached %q", ErrVersion, kind)
		}
		kinds = kinds[i:]
	}
	for _, kind := range kinds {
		var after []byte
		if c.mark.GetKind() == string(kind) {
			after = c.mark.GetKey()
		}
		if err := c.copyKind(ctx, kind, after); err != nil {
			return err
		}
	}
	return nil
}

func (c *conversion) copyKind(ctx context.Context, kind RowKind, after []byte) error {
	for count := uint64(0); ; {
		rows, err := c.from.Page(ctx, kind, after)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			if len(row.Value) >= MaxRowBytes {
				return fmt.Errorf("row %q of the %s has %d bytes: want fewer than %d", row.Key, kind, len(row.Value), MaxRowBytes)
			}
		}
		after = rows[len(rows)-1].Key
		c.mark.Kind, c.mark.Key = string(kind), after
		if err := c.to.Put(ctx, kind, rows, c.mark); err != nil {
			return err
		}
		count += uint64(len(rows))
		c.told(Converted{Kind: kind, Rows: count})
	}
}

// compareAll verifies that both stores have the same rows, and counts them.
func (c *conversion) compareAll(ctx context.Context) (counts []Converted, err error) {
	for _, kind := range RowKinds() {
		count, err := c.compareKind(ctx, kind)
		if err != nil {
			return nil, err
		}
		counts = append(counts, Converted{Kind: kind, Rows: count, Compared: true})
	}
	return counts, nil
}

func (c *conversion) compareKind(ctx context.Context, kind RowKind) (count uint64, err error) {
	want, got := &rows{of: c.from, kind: kind}, &rows{of: c.to, kind: kind}
	for {
		a, err := want.next(ctx)
		if err != nil {
			return 0, err
		}
		b, err := got.next(ctx)
		if err != nil {
			return 0, err
		}
		if a == nil && b == nil {
			return count, nil
		}
		if err := compareRows(a, b); err != nil {
			return 0, fmt.Errorf("%w among the %s: %w: %s, and convert again", ErrDiffers, kind, err, c.to.EmptyHint())
		}
		if count++; count%RowsPerPage == 0 {
			c.told(Converted{Kind: kind, Rows: count, Compared: true})
		}
	}
}

// compareRows returns how a copied row differs from its source, or nil.
func compareRows(want, got *Row) error {
	switch {
	case got == nil || want != nil && bytes.Compare(want.Key, got.Key) < 0:
		return fmt.Errorf("row %q is missing", want.Key)
	case want == nil || !bytes.Equal(want.Key, got.Key):
		return fmt.Errorf("row %q is not in the source", got.Key)
	case !bytes.Equal(want.Value, got.Value):
		return fmt.Errorf("row %q is another", want.Key)
	}
	return nil
}

// finish lets trackers open the target, unless the source has been written in the meantime.
func (c *conversion) finish(ctx context.Context) error {
	state, err := c.from.State(ctx)
	if err != nil || c.mark.GetFinished() {
		return err
	}
	if state != c.mark.GetState() {
		return fmt.Errorf("%w: the source changed during the conversion: stop its writers, %s, and convert again", ErrDiffers, c.to.EmptyHint())
	}
	done := proto.CloneOf(c.mark)
	done.Finished = true
	return c.to.Put(ctx, "", nil, done)
}

// rows iterates over the rows of a kind.
type rows struct {
	of    Stopped
	kind  RowKind
	page  []Row
	after []byte
	ended bool
}

// next returns the next row, or nil after the last.
func (r *rows) next(ctx context.Context) (*Row, error) {
	if len(r.page) == 0 && !r.ended {
		var err error
		if r.page, err = r.of.Page(ctx, r.kind, r.after); err != nil {
			return nil, err
		}
		r.ended = len(r.page) == 0
	}
	if r.ended {
		return nil, nil
	}
	row := &r.page[0]
	r.page, r.after = r.page[1:], row.Key
	return row, nil
}
