package gpu

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/lab/bench"
)

// recordsName is the file of all records beside the results, for later machines and for training a cost
// model.
const recordsName = "records.jsonl.gz"

// records returns the store that searches write to.
func (b *suite) records() string { return b.path("records.db") }

// importRecords fills a new store with the measurements of earlier machines.
func (b *suite) importRecords(ctx context.Context) error {
	if _, err := os.Stat(b.records()); err == nil {
		return nil
	}
	name := filepath.Join(b.out, recordsName)
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	cmd := exec.CommandContext(ctx, b.tilth, "records", "import", "-", "--records", b.records())
	cmd.Stdin = lines
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("records of %s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// exportRecords saves all records of the store.
func (b *suite) exportRecords(ctx context.Context) error {
	lines, err := b.call(ctx, "records", "export", "--records", b.records())
	if err != nil {
		return err
	}
	return filesystem.WriteFile(filepath.Join(b.out, recordsName), func(w io.Writer) error {
		z := gzip.NewWriter(w)
		_, err := z.Write(lines)
		return errors.Join(err, z.Close())
	})
}

// modelName is the file of a card's cost model beside its results, for --cost-model of 'tilth tune' and 'tilth
// compile'.
const modelName = "model.txt"

// learn saves all records and trains a cost model on those of this card. It must run here, because other machines
// lack the card's target.
func (b *suite) learn(ctx context.Context) error {
	if _, err := os.Stat(b.records()); err != nil {
		return nil // nothing was tuned
	}
	if err := b.exportRecords(ctx); err != nil { // including those of an unfinished search
		return err
	}
	lines := b.path("records.jsonl")
	if _, err := b.call(ctx, "records", "export", "--records", b.records(), "-o", lines); err != nil {
		return err
	}
	_, err := bench.Output(ctx, b.lab, "costmodel", lines, "--target", "cuda", "-o", filepath.Join(b.out, modelName))
	return err
}
