package records

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
)

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
