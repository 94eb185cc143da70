package target

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Fingerprint identifies everything that affects results: hardware, instruction set, threads and toolchain. Records
// are keyed by it. The text is readable; the hash at its end covers every field.
func (t *Target) Fingerprint() string {
	parts := []string{t.readable()}
	if t.Toolchain != "" {
		parts = append(parts, t.Toolchain)
	}
	return strings.Join(append(parts, t.hash()), "-")
}

// threadsPart matches the number of threads in a fingerprint.
var threadsPart = regexp.MustCompile(`-([0-9]+)t-`)

// Difference describes how a target with the given fingerprint differs from t, if only by its threads and toolchain,
// such as "1 thread" or "gcc-12.2.0". It is empty for t itself.
func (t *Target) Difference(fingerprint string) string {
	if fingerprint == t.Fingerprint() {
		return ""
	}
	threads := []int{t.Threads()}
	if m := threadsPart.FindStringSubmatch(fingerprint); m != nil {
		n, _ := strconv.Atoi(m[1]) // too large a number matches no target
		threads = append(threads, n)
	}
	for _, n := range threads {
		other := t.WithThreads(n)
		toolchain, same := strings.CutPrefix(fingerprint, other.readable()+"-")
		other.Toolchain = toolchain[:max(strings.LastIndex(toolchain, "-"), 0)]
		if !same || other.Fingerprint() != fingerprint {
			continue
		}
		var parts []string
		if n == 1 && t.Threads() != 1 {
			parts = append(parts, "1 thread")
		} else if n != t.Threads() {
			parts = append(parts, fmt.Sprintf("%d threads", n))
		}
		if other.Toolchain != t.Toolchain {
			parts = append(parts, other.Toolchain)
		}
		return strings.Join(parts, " with ")
	}
	return "target " + fingerprint
}

// DeviceClass identifies the hardware, its threads and the measured quantity, independent of the toolchain: two
// devices of one class measure the same. A simulated GPU does not count as hardware.
func (t *Target) DeviceClass() string {
	hardware := t.WithToolchain("").WithBackend(Default)
	if t.GPU != nil && t.GPU.Simulated {
		hardware.GPU = nil
	}
	return hardware.readable() + "-" + hardware.hash()
}

func (t *Target) readable() string {
	name := t.CPU.readable()
	if t.hosts() {
		name = slug(t.CPU.Arch)
	}
	if t.GPU != nil {
		name = t.GPU.readable() + "-" + name
	}
	if t.Backend != Default {
		name = t.Backend + "-" + name
	}
	if t.Objective != "" {
		name = t.Objective + "-" + name // records.MeasuresEnergy parses this prefix
	}
	return name
}

// hosts reports whether the processor is only the host of a GPU, described by its architecture alone.
func (t *Target) hosts() bool { return t.GPU != nil && t.CPU.Model == generic }

func (c *CPU) readable() string {
	return fmt.Sprintf("%s-%s-%dt", slug(c.Model), c.level(), c.Threads)
}

// kind returns a readable name without threads, with the extensions that determine a processor's speed.
func (c *CPU) kind() string {
	parts := []string{slug(c.Model), c.level()}
	for _, engine := range []struct {
		name     string
		features []string
	}{
		{"vnni", []string{"avx512vnni", "avxvnni"}}, {"bf16", []string{"avx512bf16", "bf16"}}, {"amx", []string{"amx-tile"}},
		{"dotprod", []string{"dotprod"}}, {"i8mm", []string{"i8mm"}},
	} {
		if slices.ContainsFunc(engine.features, c.Has) {
			parts = append(parts, engine.name)
		}
	}
	return strings.Join(parts, "-")
}

// level returns a readable summary of the instruction set.
func (c *CPU) level() string {
	switch {
	case c.Has("avx512f"):
		return "avx512"
	case c.Has("avx2"):
		return "avx2"
	case c.Has("sve"):
		return "sve"
	default:
		return c.Arch
	}
}

func (t *Target) hash() string {
	sum := sha256.Sum256(t.Encode())
	return hex.EncodeToString(sum[:5])
}

// slug keeps letters and digits, joined by single hyphens.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return strings.Join(words, "-")
}
