package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// maker is what made something that a runner keeps for later batches. What a hostile harness makes must not be used
// with an honest one, and what one builder's harness made not for another builder's batch.
type maker struct {
	// builtBy is whose builder sent the artifacts; harness and reference are their digests.
	builtBy, harness, reference string
}

// key names the reference's results by all that they depend on: who made them by which programs, on what data and
// under which launcher.
func (m maker) key(seed uint64, launcher []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %q", m.builtBy, m.harness, m.reference, seed, launcher))
	return hex.EncodeToString(sum[:])
}

// device names what is remembered of a device class: its calibrations are what a harness says.
func (m maker) device(class string) string {
	return fmt.Sprintf("%q %q %q", class, m.builtBy, m.harness)
}
