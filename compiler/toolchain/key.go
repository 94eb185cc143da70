package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Key names the result of a build: equal keys mean equal output. Limits and parallelism do not matter to it.
func (tc *Toolchain) Key(b Build) string {
	b.Limits, b.Parallel = Limits{}, 0
	b.Target = b.Target.WithToolchain(tc.Name)
	data, err := json.Marshal(b)
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
