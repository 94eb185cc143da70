package records

import (
	"crypto/rand"
	"strings"

	"github.com/tilth-dev/tilth/internal/wire"
)

// lifeLetters is the length of a generation's random name: 30 bits.
const lifeLetters = 6

// mostLifeLetters bounds the length of a given name.
const mostLifeLetters = 16

// NewLife returns a random name for a generation of the store.
func NewLife() string { return strings.ToLower(rand.Text()[:lifeLetters]) }

// NewLifeOf returns a random name for a generation of one of several shards. The name identifies the shard; see
// wire.ShardOf.
func NewLifeOf(shard int) string { return wire.ShardMark(shard) + NewLife() }

// IsLife reports whether text could name a generation.
func IsLife(text string) bool {
	return text != "" && len(text) <= mostLifeLetters && strings.Trim(text, wire.LifeLetters) == ""
}
