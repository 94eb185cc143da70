package tracker

import (
	"context"
	"time"

	waits "github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/records"
)

// scrubEvery is how often each row of the records file is checked.
const scrubEvery = 24 * time.Hour

// tellDamage logs a damaged row of the records file, once.
func (t *Tracker) tellDamage(d *records.Damage) {
	t.log.Error("row of the records file damaged", "bucket", d.Bucket, "key", string(d.Key), "error", d.Err)
}

// scrubStore checks all rows of the records file once a day, at the rate at which artifacts are checked, until ctx
// ends.
func (t *Tracker) scrubStore(ctx context.Context) {
	rate := float64(t.cfg.Artifacts.ScrubBytes)
	if rate <= 0 {
		return
	}
	for ctx.Err() == nil {
		begin := t.cfg.Clock()
		err := t.db.Scrub(ctx, func(rows, sizeBytes int) error {
			t.metrics.rowsChecked.Add(float64(rows))
			return waits.Sleep(ctx, time.Duration(float64(sizeBytes)/rate*float64(time.Second)))
		})
		if err == nil {
			t.metrics.storeChecked.Set(float64(t.cfg.Now().Unix()))
		} else if ctx.Err() == nil {
			t.log.Error("records file not checked", "error", err)
		}
		_ = waits.Sleep(ctx, max(scrubEvery-t.cfg.Clock().Sub(begin), time.Minute))
	}
}
