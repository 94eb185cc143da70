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

// ratesOfDay is what a machine's rates were when they were measured, in a file of the cache.
type ratesOfDay struct {
	// Day is the day in UTC, such as 2026-03-01.
	Day   string          `json:"day"`
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

// daily returns the rates in a file when they are of this day, and what measure finds otherwise, which it keeps there. A file
// that cannot be read or written is one that is not there.
func daily(path string, now time.Time, measure func() (roofline.Rates, error)) (roofline.Rates, error) {
	day := now.UTC().Format(time.DateOnly)
	var kept ratesOfDay
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &kept) == nil && kept.Day == day {
		if rates, err := roofline.Decode(kept.Rates); err == nil {
			return rates, nil
		}
	}
	rates, err := measure()
	if err != nil {
		return rates, err
	}
	if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
		_ = atomicfile.Write(path, func(w io.Writer) error { // the next command measures again
			return json.NewEncoder(w).Encode(ratesOfDay{Day: day, Rates: rates.Encode()})
		})
	}
	return rates, nil
}
