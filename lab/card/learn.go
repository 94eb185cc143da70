package card

import (
	"context"
	"os"
	"path/filepath"

	"github.com/tilth-dev/tilth/lab/bench"
)

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
