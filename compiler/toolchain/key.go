package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Key identifies the result of a build: equal keys mean equal output. Limits and parallelism do not affect it.
func (tc *Toolchain) Key(b Build) string {
	b.Limits, b.Parallel = Limits{}, 0
	b.Target = b.Target.WithToolchain(tc.For(b.Target))
	data, err := json.Marshal(b)
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Identity identifies a compiler by its executable's path, size and modification time, which change when it is
// replaced.
func Identity(compiler string) string {
	real, err := filepath.EvalSymlinks(compiler)
	if err != nil {
		return compiler
	}
	info, err := os.Stat(real)
	if err != nil {
		return compiler
	}
	return fmt.Sprintf("%s %d %d", real, info.Size(), info.ModTime().UnixNano())
}
