package farm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/disk"
)

// measuredAnew is the minimum time between measurements. Later ones correct a measurement on a busy machine.
const measuredAnew = 10 * time.Minute

// ratesOfDay is the cached maximum of a day's measurements.
type ratesOfDay struct {
	// Day is the day in UTC, such as 2026-03-01. At is the time of the latest measurement.
	Day   string          `json:"day"`
	At    time.Time       `json:"at"`
	Rates json.RawMessage `json:"rates"`
}

// ratesPath returns the path of a target's rates on this machine.
func ratesPath(cacheDir string, t *target.Target) string {
	sum := sha256.New()
	host, _ := os.Hostname() // without a name, the machine has an id or does not share the cache
	id, _ := os.ReadFile("/etc/machine-id")
	for _, part := range []string{host, string(id), t.DeviceClass()} {
		_, _ = io.WriteString(sum, part+"\x00") // writing to a hash does not fail
	}
	return filepath.Join(cacheDir, "rates", hex.EncodeToString(sum.Sum(nil))[:32]+".json")
}

// daily returns the highest rates measured today, from the file or, if its measurement is older than
// measuredAnew, from a new one. Other load only lowers the rates of a machine, so the maximum approaches its
// real limits. An unreadable or unwritable file is ignored.
func daily(path string, now time.Time, measure func() (roofline.Rates, error)) (roofline.Rates, error) {
	now = now.UTC()
	day := now.Format(time.DateOnly)
	kept, at, known := readRates(path, day)
	if age := now.Sub(at); known && age >= 0 && age < measuredAnew {
		return kept, nil
	}
	rates, err := measure()
	switch {
	case err != nil && known:
		return kept, nil
	case err != nil:
		return rates, err
	case known:
		rates = rates.Max(kept)
	}
	if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
		_ = disk.WriteFile(path, func(w io.Writer) error { // on failure, the next command measures again
			return json.NewEncoder(w).Encode(ratesOfDay{Day: day, At: now, Rates: rates.Encode()})
		})
	}
	return rates, nil
}

// readRates returns the rates of a day and the time of the latest measurement.
func readRates(path, day string) (rates roofline.Rates, at time.Time, known bool) {
	var kept ratesOfDay
	if text, err := os.ReadFile(path); err != nil || json.Unmarshal(text, &kept) != nil || kept.Day != day {
		return rates, at, false
	}
	rates, err := roofline.Decode(kept.Rates)
	return rates, kept.At, err == nil
}
