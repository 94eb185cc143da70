package records

import (
	"crypto/rand"
	"strings"

	"github.com/tilth-dev/tilth/internal/wire"
)

// lifeLetters are how many letters name a life: 30 bits.
const lifeLetters = 6

// mostLifeLetters bounds a name that is given.
const mostLifeLetters = 16

// NewLife draws the name of a life.
func NewLife() string { return strings.ToLower(rand.Text()[:lifeLetters]) }

// NewLifeOf draws the name of a life of one of several shards, which it tells; see wire.ShardOf.
func NewLifeOf(shard int) string { return wire.ShardMark(shard) + NewLife() }

// IsLife says whether a text could be the name of a life.
func IsLife(text string) bool {
	return text != "" && len(text) <= mostLifeLetters && strings.Trim(text, wire.LifeLetters) == ""
}
