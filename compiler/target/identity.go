package target

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Fingerprint names everything that changes the answer: hardware, instruction set, threads and toolchain. Records
// are kept by it. The text is readable; the hash at its end covers every field.
func (t *Target) Fingerprint() string {
	parts := []string{t.readable()}
	if t.Toolchain != "" {
		parts = append(parts, t.Toolchain)
	}
	return strings.Join(append(parts, t.hash()), "-")
}

// DeviceClass names the hardware and the threads used on it, whatever the toolchain: two devices of one class
// measure the same.
func (t *Target) DeviceClass() string {
	hardware := t.WithToolchain("")
	return hardware.readable() + "-" + hardware.hash()
}

func (t *Target) readable() string {
	return fmt.Sprintf("%s-%s-%dt", slug(t.CPU), t.level(), t.Threads)
}

// level is the readable summary of the instruction set.
func (t *Target) level() string {
	switch {
	case t.Has("avx512f"):
		return "avx512"
	case t.Has("avx2"):
		return "avx2"
	case t.Has("sve"):
		return "sve"
	default:
		return t.Arch
	}
}

func (t *Target) hash() string {
	sum := sha256.Sum256(t.Encode())
	return hex.EncodeToString(sum[:5])
}

// slug keeps letters and digits and puts one hyphen between the runs of them.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return strings.Join(words, "-")
}
