package tracker

import (
	"context"
	"time"

	waits "github.com/tilth-dev/tilth/internal/retry"
)

// scrubEvery is the interval between checks of each row.
const scrubEvery = 24 * time.Hour

// scrub checks all rows of the records file once a day, at the rate used for artifacts, until ctx ends.
func (u *Upkeep) scrub(ctx context.Context) {
	rate := float64(u.ScrubBytes)
	if rate <= 0 {
		return
	}
	for ctx.Err() == nil {
		begin := u.Clock()
		err := u.File.Scrub(ctx, func(rows, sizeBytes int) error {
			u.Observer.RowsChecked(rows)
			return waits.Sleep(ctx, time.Duration(float64(sizeBytes)/rate*float64(time.Second)))
		})
		if err == nil {
			u.Observer.Checked(u.Now())
		} else if ctx.Err() == nil {
			u.Logger.Error("records file not checked", "error", err)
		}
		_ = waits.Sleep(ctx, max(scrubEvery-u.Clock().Sub(begin), time.Minute))
	}
}
