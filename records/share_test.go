package records_test

import (
	"errors"
	"math"
	"testing"

	"github.com/tilth-dev/tilth/records"
)

// A tuner's word for how much an algorithm saves is a part of the whole, or the limits seen against it make no sense.
func TestASchedulesMultiplicationsAreAShare(t *testing.T) {
	for share, fits := range map[float64]bool{0: true, 0.25: true, 1: true, 1.5: false, -0.1: false, math.Inf(1): false, math.NaN(): false} {
		r := newRecord("cpu", "conv", 1, 0.004)
		r.Measurement.Candidate.Multiplications = share
		if err := records.Validate(r); errors.Is(err, records.ErrInvalid) == fits {
			t.Errorf("%v: %v", share, err)
		}
	}
}
