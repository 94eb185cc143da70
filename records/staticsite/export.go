package staticsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tilth-dev/tilth/internal/signing"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storesync"
)

// Files gives access to the files of an export.
type Files interface {
	// Name returns the location, for messages.
	Name() string
	// Index returns the index, of at most maxIndexBytes.
	Index(ctx context.Context) ([]byte, error)
	// Chunk returns a verified chunk file at its beginning. The caller must close it.
	Chunk(ctx context.Context, c Chunk) (*os.File, error)
	// Signature returns the signature of the index, of at most maxSignatureBytes.
	Signature(ctx context.Context) ([]byte, error)
}

// Export reads an export. It implements storesync.Source.
type Export struct {
	files Files
	index *Index
}

// Open reads the index of an export.
func Open(ctx context.Context, files Files) (*Export, error) {
	e := &Export{files: files}
	text, err := files.Index(ctx)
	if err == nil {
		e.index, err = Parse(text)
	}
	if err != nil {
		return nil, e.explain(IndexName, err)
	}
	return e, nil
}

// explain adds the name of the file and, for damage, the remedy.
func (e *Export) explain(file string, err error) error {
	remedy := ""
	switch {
	case errors.Is(err, records.ErrVersion):
		remedy = ": export them again with this version of tilth"
	case errors.Is(err, records.ErrDamaged), errors.Is(err, records.ErrInvalid):
		remedy = ": try again, it may have been replaced meanwhile, or have the records exported again with 'tilth records export --static'"
	}
	return fmt.Errorf("records at %s: %s: %w%s", e.files.Name(), file, err, remedy)
}

// Groups implements storesync.Catalogue.
func (e *Export) Groups(_ context.Context, f storesync.Filter, _ string) (all []storesync.Summary, next string, err error) {
	for _, t := range e.index.Targets {
		for _, w := range t.Workloads {
			of := records.Group{Target: t.Target, Workload: w.Workload}
			if f.Wants(of) {
				all = append(all, storesync.Summary{Group: of, Records: w.Records, Keys: w.keys()})
			}
		}
	}
	return all, "", nil
}

// Offer implements storesync.Source.
func (e *Export) Offer(ctx context.Context, of records.Group, lacks storesync.Lacks, take func(*tilthv1.Record) error) error {
	w, _ := e.index.find(of)
	for _, c := range w.Chunks {
		err := e.read(ctx, c, func(next func() (*tilthv1.Record, error)) error { return storesync.OfferLines(ctx, next, lacks, take) })
		if err != nil {
			return err
		}
	}
	return nil
}

// List visits all matching records; see records.Measurements. The first record of each chunk has the workload's
// canonical form.
func (e *Export) List(ctx context.Context, target, workload string, visit func(*tilthv1.Record) error) error {
	f := storesync.Filter{Target: target}
	if workload != "" {
		f.Workloads = []string{workload}
	}
	groups, _, err := e.Groups(ctx, f, "")
	if err != nil {
		return err
	}
	for _, g := range groups {
		w, _ := e.index.find(g.Group)
		for _, c := range w.Chunks {
			if err := e.each(ctx, g.Group, c, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// each visits and validates the records of a chunk.
func (e *Export) each(ctx context.Context, of records.Group, c Chunk, visit func(*tilthv1.Record) error) error {
	return e.read(ctx, c, func(next func() (*tilthv1.Record, error)) error {
		for {
			r, err := next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = admit(of, r)
			}
			if err != nil {
				return e.explain(c.name(), err)
			}
			if err := visit(r); err != nil {
				return err
			}
		}
	})
}

func admit(of records.Group, r *tilthv1.Record) error {
	if err := records.Admit(r); err != nil {
		return err
	}
	if r.GetTarget() != of.Target || r.GetWorkloadDigest() != of.Workload {
		return fmt.Errorf("%w: a record of another target or workload than the index says", records.ErrDamaged)
	}
	return nil
}

// read calls do with a reader of a chunk's unvalidated records.
func (e *Export) read(ctx context.Context, c Chunk, do func(next func() (*tilthv1.Record, error)) error) error {
	f, err := e.files.Chunk(ctx, c)
	if err != nil {
		return e.explain(c.name(), err)
	}
	defer f.Close()
	next, err := c.open(f)
	if err != nil {
		return e.explain(c.name(), err)
	}
	return do(func() (*tilthv1.Record, error) {
		r, err := next()
		if err != nil && !errors.Is(err, io.EOF) {
			err = e.explain(c.name(), err)
		}
		return r, err
	})
}

// fetchedAtOnce bounds concurrent fetches of chunks. A model needs some dozens.
const fetchedAtOnce = 8

// Best returns the best record allowed by a level of numerics for each workload on a target. No workloads means all
// workloads, an empty target all targets. Workloads without a best record are omitted.
func (e *Export) Best(ctx context.Context, target, numerics string, workloads ...string) ([]*tilthv1.Record, error) {
	level, err := records.AllowedLevel(numerics)
	if err != nil {
		return nil, err
	}
	groups, _, err := e.Groups(ctx, storesync.Filter{Target: target, Workloads: slices.Sorted(slices.Values(workloads))}, "")
	if err != nil {
		return nil, err
	}
	found := make([]*tilthv1.Record, len(groups))
	all, ctx := errgroup.WithContext(ctx) // after an error, the other fetches would fail too, or are useless
	all.SetLimit(fetchedAtOnce)
	for i, g := range groups {
		all.Go(func() (err error) {
			found[i], err = e.best(ctx, g.Group, level)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(r *tilthv1.Record) bool { return r == nil }), nil
}

// best returns the best record of a group at a level, or nil.
func (e *Export) best(ctx context.Context, of records.Group, level int) (best *tilthv1.Record, err error) {
	w, _ := e.index.find(of)
	if w.Best == nil {
		return nil, nil
	}
	var bests records.Bests
	err = e.each(ctx, of, *w.Best, func(r *tilthv1.Record) error {
		key := records.KeyOf(r.GetMeasurement())
		if !records.Verified(r.GetMeasurement()) || !bests.Offer(key, r.GetMeasurement()) {
			return nil
		}
		if bests[level].Measurement != nil && bests[level].Key == key {
			best = r
		}
		return nil
	})
	return best, err
}

// Folder is an export in a local folder.
type Folder string

// Name implements Files.
func (f Folder) Name() string { return string(f) }

// Index implements Files.
func (f Folder) Index(context.Context) ([]byte, error) {
	file, err := signing.OpenRegular(filepath.Join(string(f), IndexName))
	if err != nil {
		if isMissing(err) {
			err = errors.New("it is not there: 'tilth records export --static' makes it")
		}
		return nil, err
	}
	defer file.Close()
	return readBounded(file, maxIndexBytes)
}

// Signature implements Files.
func (f Folder) Signature(context.Context) ([]byte, error) {
	file, err := signing.OpenRegular(filepath.Join(string(f), IndexName+signing.Suffix))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file, maxSignatureBytes)
}

// Chunk implements Files.
func (f Folder) Chunk(_ context.Context, c Chunk) (*os.File, error) {
	return openVerified(filepath.Join(string(f), filepath.FromSlash(c.name())), c)
}

// openVerified opens a file and verifies that it is the chunk.
func openVerified(path string, c Chunk) (*os.File, error) {
	file, err := signing.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	if err := c.verify(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// maxSignatureBytes bounds the signature of an index.
const maxSignatureBytes = 16 << 10

// Signed wraps an export whose index is signed by a key; the index covers all chunks by digest. What it returns is
// what was verified, even if the files change.
type Signed struct {
	Files
	Key signing.PublicKey
}

// Index implements Files.
func (s Signed) Index(ctx context.Context) ([]byte, error) {
	text, err := s.Files.Index(ctx)
	if err != nil {
		return nil, err
	}
	signed, err := s.Signature(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no %s", signing.ErrUnsigned, IndexName+signing.Suffix)
	}
	if err != nil {
		return nil, fmt.Errorf("its signature: %w", err)
	}
	signature, err := signing.ParseSignature(signed)
	if err != nil {
		return nil, err
	}
	if _, err := signature.Verify(bytes.NewReader(text), s.Key); err != nil {
		return nil, fmt.Errorf("it is not verified: %w", err)
	}
	return text, nil
}

// Chunk implements Files.
func (s Signed) Chunk(ctx context.Context, c Chunk) (*os.File, error) {
	file, err := s.Files.Chunk(ctx, c)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sealed, err := signing.Sealed(file, c.SizeBytes)
	if err != nil {
		return nil, err
	}
	if err := c.verify(sealed); err != nil {
		return nil, errors.Join(err, sealed.Close())
	}
	return sealed, nil
}
