package records

import (
	"crypto/rand"
	"strings"

	"github.com/tilth-dev/tilth/internal/wire"
)

// generationLetters is the length of a generation's random name: 30 bits.
const generationLetters = 6

// maxGenerationLetters bounds the length of a given name.
const maxGenerationLetters = 16

// NewGeneration returns a random name for a generation of the store.
func NewGeneration() string { return strings.ToLower(rand.Text()[:generationLetters]) }

// NewGenerationOf returns a random name for a generation of one of several shards. The name identifies the shard; see
// wire.ShardOf.
func NewGenerationOf(shard int) string { return wire.ShardMark(shard) + NewGeneration() }

// IsGeneration reports whether text could name a generation.
func IsGeneration(text string) bool {
	return text != "" && len(text) <= maxGenerationLetters && strings.Trim(text, wire.GenerationLetters) == ""
}
