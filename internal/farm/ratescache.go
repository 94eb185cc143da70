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
	"github.com/tilth-dev/tilth/internal/atomicfile"
)

// measuredAnew is how long a measurement is left alone. One that fell into a busy moment is corrected after that.
const measuredAnew = 10 * time.Minute

// ratesOfDay is the most that a machine did in a day's measurements, in a file of the cache.
type ratesOfDay struct {
	// Day is the day in UTC, such as 2026-03-01, and At when the machine was last measured.
	Day   string          `json:"day"`
	At    time.Time       `json:"at"`
	Rates json.RawMessage `json:"rates"`
}

// ratesPath is the file of a target's rates on this machine.
func ratesPath(cacheDir string, t *target.Target) string {
	sum := sha256.New()
	host, _ := os.Hostname() // a machine without a name has an id, or is the only one with this cache
	id, _ := os.ReadFile("/etc/machine-id")
	for _, part := range []string{host, string(id), t.DeviceClass()} {
		_, _ = io.WriteString(sum, part+"\x00") // a hash never fails
	}
	return filepath.Join(cacheDir, "rates", hex.EncodeToString(sum.Sum(nil))[:32]+".json")
}

// daily returns the highest rates that were measured on this day, which a file keeps. It measures unless that was done
// within measuredAnew: whatever else runs on a machine lowers its rates and nothing raises them, so that each
// measurement comes nearer to what it can do. A file that cannot be read or written is one that is not there.
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
		rates = rates.Most(kept)
	}
	if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
		_ = atomicfile.Write(path, func(w io.Writer) error { // the next command measures again
			return json.NewEncoder(w).Encode(ratesOfDay{Day: day, At: now, Rates: rates.Encode()})
		})
	}
	return rates, nil
}

// readRates are a day's rates so far, and when they were last measured.
func readRates(path, day string) (rates roofline.Rates, at time.Time, known bool) {
	var kept ratesOfDay
	if text, err := os.ReadFile(path); err != nil || json.Unmarshal(text, &kept) != nil || kept.Day != day {
		return rates, at, false
	}
	rates, err := roofline.Decode(kept.Rates)
	return rates, kept.At, err == nil
}
