package target

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/records"
)

// TestTargetsForEnergyAreTargetsOfTheirOwn, which the records know by their names, since they do not read targets.
func TestTargetsForEnergyAreTargetsOfTheirOwn(t *testing.T) {
	plain, err := Parse("arm64", 4)
	if err != nil {
		t.Fatal(err)
	}
	metered := plain.WithObjective(Energy)
	for _, c := range []struct{ of, other string }{
		{plain.Fingerprint(), metered.Fingerprint()}, {plain.DeviceClass(), metered.DeviceClass()},
		{plain.WithToolchain("clang-19").Fingerprint(), metered.WithToolchain("clang-19").Fingerprint()},
	} {
		if c.of == c.other || records.MeasuresEnergy(c.of) || !records.MeasuresEnergy(c.other) || !records.MeasuresEnergy(records.Private(c.other, "me")) {
			t.Errorf("%s and %s", c.of, c.other)
		}
	}
	again, err := Decode(metered.Encode())
	if err != nil || again.Objective != Energy || again.Fingerprint() != metered.Fingerprint() {
		t.Errorf("read again: %+v, %v", again, err)
	}
	if same := metered.WithObjective(""); same.Fingerprint() != plain.Fingerprint() {
		t.Errorf("for latency again: %s", same.Fingerprint())
	}
	if err := plain.WithObjective("noise").Check(); err == nil || !strings.Contains(err.Error(), `objective "noise" is not known`) {
		t.Errorf("another objective: %v", err)
	}
}
