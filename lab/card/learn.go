package card

import (
	"context"
	"os"
	"path/filepath"
)

// modelName keeps the cost model of a card beside its results, for --cost-model of 'tilth tune' and 'tilth compile'.
const modelName = "model.txt"

// learn keeps all records, and trains a cost model on those of this card. Elsewhere their target would have to be
// described first.
func (b *bench) learn(ctx context.Context) error {
	if _, err := os.Stat(b.records()); err != nil {
		return nil // nothing was tuned
	}
	if err := b.exportRecords(ctx); err != nil { // those of a search that did not come to its end, too
		return err
	}
	lines := b.path("records.jsonl")
	if _, err := b.call(ctx, "records", "export", "--records", b.records(), "-o", lines); err != nil {
		return err
	}
	_, err := b.call(ctx, "bench", "model", lines, "--target", "cuda", "-o", filepath.Join(b.out, modelName))
	return err
}
