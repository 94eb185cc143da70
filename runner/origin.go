package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// buildOrigin identifies the origin of cached results. Results of a hostile harness must not be used with an honest
// one, and results of one builder's harness must not be used for another builder's batch.
type buildOrigin struct {
	// builtBy identifies the owner of the builder; harness and reference are digests.
	builtBy, harness, reference string
}

// key returns a cache key for the reference's results that covers all their inputs: the origin, the programs,
// the data and the launcher.
func (m buildOrigin) key(seed uint64, launcher []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %q", m.builtBy, m.harness, m.reference, seed, launcher))
	return hex.EncodeToString(sum[:])
}

// device returns the key of a device class's calibrations, which a harness reports.
func (m buildOrigin) device(class string) string {
	return fmt.Sprintf("%q %q %q", class, m.builtBy, m.harness)
}
